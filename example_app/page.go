package main

import (
	"embed"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/tiers"
)

//go:embed page
var pageFiles embed.FS

// pagePolicy lets the page load its own files and ask this service, and nothing else. No script or style
// stands in the HTML.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// aboutPage is what the page is told: whom it may call as, and each tier's share of the provider's cap.
type aboutPage struct {
	Keys   []demoKey              `json:"keys"` // none: the page asks for one
	Shares map[tiers.Tier]float64 `json:"shares,omitempty"`
}

// mountPage serves the page, which is no secret, at /. It has no key of its own but the demo keys.
func mountPage(router gin.IRoutes, cfg config) {
	for path, file := range map[string]struct{ name, contentType string }{
		"/":         {"index.html", "text/html; charset=utf-8"},
		"/page.css": {"page.css", "text/css; charset=utf-8"},
		"/page.js":  {"page.js", "text/javascript; charset=utf-8"},
		"/page.svg": {"page.svg", "image/svg+xml"},
	} {
		data, err := pageFiles.ReadFile("page/" + file.name)
		if err != nil {
			panic(err) // of a file that is embedded
		}
		get(router, path, pageHeaders, func(c *gin.Context) { c.Data(http.StatusOK, file.contentType, data) })
	}
	about := aboutPage{Keys: []demoKey{}}
	if cfg.demo {
		about.Keys = demoKeys(cfg.callers)
	}
	if cfg.upstreamCap != nil {
		about.Shares = cfg.upstreamCap.Share
	}
	get(router, "/page.json", pageHeaders, func(c *gin.Context) { c.JSON(http.StatusOK, about) })
}

func pageHeaders(c *gin.Context) {
	c.Header("Content-Security-Policy", pagePolicy)
	c.Header("X-Content-Type-Options", "nosniff")
	c.Header("Referrer-Policy", "no-referrer")
	c.Header("Cross-Origin-Opener-Policy", "same-origin")
	c.Header("Cache-Control", "no-cache")
}
