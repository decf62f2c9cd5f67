// Package page tests the example app's page in a headless Chromium.
//
//	go test ./... -count=1                         # needs chromium or google-chrome on PATH
//	go test ./... -count=1 -screenshots ../../docs # writes page-*.png there
//
// It is a module of its own, so that nobody else builds a browser's driver.
package page
