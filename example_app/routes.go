package main

import (
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit"
)

// backend answers the requests that the limiter has admitted.
type backend struct {
	asking map[string]gin.HandlerFunc // what asks a model, by path below /v1; all of it is POST
	models struct{ list, show gin.HandlerFunc }
	other  gin.HandlerFunc // whatever else there is below /v1; nil: nothing
}

// newRouter mounts the limiter behind the authentication, on everything below /v1 but GET /v1/usage.
func newRouter(cfg config, limiter *ginlimit.Limiter) http.Handler {
	auth := cfg.callers.authenticate
	subject := ginlimit.FromContext(userKey, tierKey)
	watch := newWatcher(limiter)
	limits := newLimits(cfg, limiter, subject, watch)
	models := newBackend(cfg)

	router := gin.New()
	_ = router.SetTrustedProxies(nil)    // callers are known by their key, never by a header's address
	router.RedirectTrailingSlash = false // a redirect would be an answer that costs nothing
	router.HandleMethodNotAllowed = true
	unlogged := router.Group("", recovery, endStalled(cfg.stallTime)) // asked again and again, by nobody's key
	get(unlogged, "/healthz", func(c *gin.Context) { c.JSON(http.StatusOK, gin.H{"status": "ok"}) })
	get(unlogged, "/readyz", showReadiness(limiter, cfg))
	get(unlogged, "/metrics", watch.showMetrics())
	mountPage(unlogged, cfg)
	router.Use(logRequest, recovery, endStalled(cfg.stallTime))
	mountAdmin(router, cfg, limiter)

	v1 := router.Group("/v1", auth)
	get(v1, "/usage", showUsage(limiter, subject, cfg))
	asking := v1.Group("", append(limits.asking, readBody)...)
	for path, answer := range models.asking {
		asking.POST(path, answer)
	}
	other := v1.Group("", append(limits.other, readBody)...)
	get(other, "/models", models.models.list)
	get(other, "/models/*id", needModelID, models.models.show)

	// Unknown routes below /v1 cost a request too: guessing is not free.
	unrouted := rest(auth, limits, models.other)
	router.NoRoute(append(unrouted, fail(errNotFound))...)
	router.NoMethod(append(unrouted, fail(errMethodNotAllowed))...)
	return boundBodies(http.MaxBytesHandler(router, cfg.maxBody))
}

func newBackend(cfg config) backend {
	if cfg.upstreamURL != nil {
		return newUpstream(cfg.upstreamURL, cfg.upstreamAPIKey).backend()
	}
	return builtIn{model{newTokenizer(cfg.maxBody)}}.backend()
}

// get mounts handlers for GET and for HEAD, where the server leaves the body out.
func get(routes gin.IRoutes, path string, handlers ...gin.HandlerFunc) {
	routes.Match([]string{http.MethodGet, http.MethodHead}, path, handlers...)
}

// rest is the chain for what no route is for, below /v1. What a backend forwards with a body may ask a model,
// under whatever name.
func rest(auth gin.HandlerFunc, limits limits, other gin.HandlerFunc) gin.HandlersChain {
	asks := func(r *http.Request) bool {
		return belowV1(r) && other != nil && (r.Method == http.MethodPost || r.ContentLength != 0)
	}
	chain := when(belowV1, auth)
	chain = append(chain, when(asks, limits.asking...)...)
	chain = append(chain, when(func(r *http.Request) bool { return belowV1(r) && !asks(r) }, limits.other...)...)
	if other != nil {
		chain = append(chain, when(belowV1, readBody, func(c *gin.Context) {
			other(c)
			c.Abort()
		})...)
	}
	return slices.Clip(chain)
}

// when runs handlers only for the requests that are meant.
func when(meant func(r *http.Request) bool, handlers ...gin.HandlerFunc) gin.HandlersChain {
	var chain gin.HandlersChain
	for _, handle := range handlers {
		chain = append(chain, func(c *gin.Context) {
			if meant(c.Request) {
				handle(c)
			}
		})
	}
	return chain
}

func belowV1(r *http.Request) bool {
	return r.URL.Path == "/v1" || strings.HasPrefix(r.URL.Path, "/v1/")
}

// fail answers every request with e.
func fail(e *apiError) gin.HandlerFunc {
	return func(c *gin.Context) { abort(c, e) }
}
