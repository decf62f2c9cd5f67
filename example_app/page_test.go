package main

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// The page and its files load nothing from elsewhere, and nothing runs that stands in the HTML.
func TestPage(t *testing.T) {
	t.Parallel()
	a := start(t, env{"API_KEYS": ownKey + "=me:pro"})
	for path, contentType := range map[string]string{
		"/": "text/html; charset=utf-8", "/page.css": "text/css; charset=utf-8",
		"/page.js": "text/javascript; charset=utf-8", "/page.svg": "image/svg+xml",
		"/page.json": "application/json; charset=utf-8",
	} {
		got := a.sendRoute(t, "GET "+path, "")
		require.Equal(t, 200, got.status, path)
		require.Equal(t, contentType, got.header.Get("Content-Type"), path)
		require.NotEmpty(t, got.body, path)
		require.Regexp(t, `^default-src 'none'; script-src 'self'; style-src 'self'; `,
			got.header.Get("Content-Security-Policy"), path)
		require.NotContains(t, got.header.Get("Content-Security-Policy"), "unsafe")
		require.Equal(t, "nosniff", got.header.Get("X-Content-Type-Options"), path)
		require.Empty(t, got.header.Get("X-RateLimit-Limit"), path)
		require.NotRegexp(t, `https?://(www\.)?[^w]`, got.body, path) // but w3.org's namespace
		head := a.sendRoute(t, "HEAD "+path, "")
		require.Equal(t, 200, head.status, path)
		require.Empty(t, head.body)
		require.Equal(t, 405, a.sendRoute(t, "POST "+path, "").status, path)
	}
	html := a.sendRoute(t, "GET /", "").body
	for _, inline := range []string{
		`<style`, `\sstyle=`, `\son\w+=`, `<script(\s[^>]*)?>\s*[^<\s]`, `javascript:`,
	} {
		require.NotRegexp(t, regexp.MustCompile(`(?i)`+inline), html)
	}
	require.Equal(t, 404, a.sendRoute(t, "GET /page", "").status)
	require.Equal(t, 404, a.sendRoute(t, "GET /page.go", "").status)
}

// The page is told the demo keys where they are in use, those of a tier that is there, and no other key.
func TestPageKeys(t *testing.T) {
	t.Parallel()
	for want, settings := range map[string]env{
		`{"keys":[{"tier":"free","key":"sk-free-demo"},{"tier":"pro","key":"sk-pro-demo"},
			{"tier":"enterprise","key":"sk-enterprise-demo"}]}`: nil,
		`{"keys":[{"tier":"pro","key":"sk-pro-demo"}]}`: {
			"TIERS_FILE": tierFile(t, "fallback: pro\ntiers:\n  pro: {per_minute: 1, per_day: 2}\n")},
		`{"keys":[]}`: {"API_KEYS": "sk-own=me:pro,sk-pro-demo=you:pro"},
	} {
		require.JSONEq(t, want, start(t, settings).sendRoute(t, "GET /page.json", "").body)
	}
}
