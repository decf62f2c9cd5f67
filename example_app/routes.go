package main

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit"
)

// backend answers the requests that the limiter has admitted.
type backend interface {
	chat(c *gin.Context)
	listModels(c *gin.Context)
	showModel(c *gin.Context)
}

// newRouter mounts the limiter behind the authentication, on everything below /v1 but GET /v1/usage.
func newRouter(cfg config, limiter *ginlimit.Limiter) http.Handler {
	auth := cfg.callers.authenticate
	subject := ginlimit.FromContext(userKey, tierKey)
	limit := ginlimit.New(limiter, subject, ginlimit.WithTiers(cfg.tiers), ginlimit.WithAtomicWindows())

	var models backend
	if cfg.upstreamURL != nil {
		models = newUpstream(cfg.upstreamURL, cfg.upstreamAPIKey)
	} else {
		models = builtIn{model{newTokenizer()}}
	}

	router := gin.New()
	_ = router.SetTrustedProxies(nil)    // callers are known by their key, never by a header's address
	router.RedirectTrailingSlash = false // a redirect would be an answer that costs nothing
	router.HandleMethodNotAllowed = true
	router.Use(recovery, endStalled(cfg.stallTime))
	get(router, "/healthz", func(c *gin.Context) { c.JSON(http.StatusOK, gin.H{"status": "ok"}) })

	v1 := router.Group("/v1", auth)
	get(v1, "/usage", showUsage(limiter, subject, cfg.tiers))
	limited := v1.Group("", limit, readBody)
	limited.POST("/chat/completions", models.chat)
	get(limited, "/models", models.listModels)
	get(limited, "/models/*id", needModelID, models.showModel)

	// Unknown routes below /v1 cost a request too: guessing is not free.
	router.NoRoute(belowV1(auth), belowV1(limit), fail(errNotFound))
	router.NoMethod(belowV1(auth), belowV1(limit), fail(errMethodNotAllowed))
	return boundBodies(http.MaxBytesHandler(router, cfg.maxBody))
}

// get mounts handlers for GET and for HEAD, where the server leaves the body out.
func get(routes gin.IRoutes, path string, handlers ...gin.HandlerFunc) {
	routes.Match([]string{http.MethodGet, http.MethodHead}, path, handlers...)
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
