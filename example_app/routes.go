package main

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit"
)

// newRouter mounts the limiter behind the authentication, on everything below /v1 but GET /v1/usage.
func newRouter(cfg config, limiter *ginlimit.Limiter) http.Handler {
	auth := cfg.callers.authenticate
	subject := ginlimit.FromContext(userKey, tierKey)
	limit := ginlimit.New(limiter, subject, ginlimit.WithTiers(cfg.tiers), ginlimit.WithAtomicWindows())

	completions, models := chat(model{newTokenizer()}), listModels
	if cfg.upstreamURL != nil {
		provider := forward(cfg.upstreamURL, cfg.upstreamAPIKey)
		completions, models = provider, provider
	}

	router := gin.New()
	_ = router.SetTrustedProxies(nil)    // callers are known by their key, never by a header's address
	router.RedirectTrailingSlash = false // a redirect would be an answer that costs nothing
	router.HandleMethodNotAllowed = true
	router.Use(recovery)
	router.GET("/healthz", func(c *gin.Context) { c.JSON(http.StatusOK, gin.H{"status": "ok"}) })

	v1 := router.Group("/v1", auth)
	v1.GET("/usage", showUsage(limiter, subject, cfg.tiers))
	limited := v1.Group("", limit, readBody)
	limited.POST("/chat/completions", completions)
	limited.GET("/models", models)

	// Unknown routes below /v1 cost a request too: guessing is not free.
	router.NoRoute(belowV1(auth), belowV1(limit), fail(errNotFound))
	router.NoMethod(belowV1(auth), belowV1(limit), fail(errMethodNotAllowed))
	return boundBodies(http.MaxBytesHandler(router, maxBody))
}

// belowV1 runs a middleware only where the path begins with /v1.
func belowV1(middleware gin.HandlerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		if path := c.Request.URL.Path; path == "/v1" || strings.HasPrefix(path, "/v1/") {
			middleware(c)
		}
	}
}

// fail answers every request with e.
func fail(e *apiError) gin.HandlerFunc {
	return func(c *gin.Context) { abort(c, e) }
}
