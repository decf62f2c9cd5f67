// Package migration holds the code of docs/migrating.md, before and after, and shows on a real Redis that
// both limit as that page says.
//
//	go test ./migration -count=1
//
// It is in the module of the peers, so that users of ginlimit never build them.
package migration
