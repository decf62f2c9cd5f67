package admin

import (
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/tiers"
)

// DefaultMaxExpiry is how long the kill switch may be on unless WithMaxExpiry says otherwise.
const DefaultMaxExpiry = time.Hour

// Option adjusts Routes.
type Option func(*routes)

// WithTiers sets the table with the limits for GET /usage. Give it the table of the middleware. The default
// is tiers.Default(). It panics on nil.
func WithTiers(table *tiers.Store) Option {
	if table == nil {
		panic("admin: WithTiers: table is nil")
	}
	return WithLiveTiers(fixed{table})
}

// WithLiveTiers takes that table from src at each request, instead of WithTiers. It panics on nil.
func WithLiveTiers(src ginlimit.TierSource) Option {
	if src == nil {
		panic("admin: WithLiveTiers: source is nil")
	}
	return func(r *routes) { r.tiers = src }
}

// fixed is a table that stays.
type fixed struct{ table *tiers.Store }

func (f fixed) Store() *tiers.Store { return f.table }

// WithMaxExpiry sets the longest time that the kill switch may be on; the default is DefaultMaxExpiry. It
// panics on less than a second.
func WithMaxExpiry(d time.Duration) Option {
	if d < time.Second {
		panic(fmt.Sprintf("admin: WithMaxExpiry: %v is less than a second", d))
	}
	return func(r *routes) { r.maxExpiry = d }
}

// WithActor sets the function that names a request's operator in the log, for example by what the
// authentication middleware stored. The default is the address of the peer, c.RemoteIP. It panics on nil.
func WithActor(actor func(c *gin.Context) string) Option {
	if actor == nil {
		panic("admin: WithActor: actor is nil")
	}
	return func(r *routes) { r.actor = actor }
}

// routes is what the handlers share. It is safe for concurrent use.
type routes struct {
	limiter   *ginlimit.Limiter
	tiers     ginlimit.TierSource
	maxExpiry time.Duration
	actor     func(c *gin.Context) string
	kill      killSwitch
}

// Routes mounts the routes of the package comment on g, for the limiter l. They show and reset the budgets of
// l's scope. All scopes of a limiter share one kill switch: use it in one group, because another group knows
// neither its reason nor its expiry. It panics on nil arguments.
func Routes(g gin.IRouter, l *ginlimit.Limiter, opts ...Option) {
	if g == nil || reflect.ValueOf(g).Kind() == reflect.Pointer && reflect.ValueOf(g).IsNil() {
		panic("admin: Routes: router is nil")
	}
	if l == nil {
		panic("admin: Routes: limiter is nil")
	}
	r := &routes{
		limiter:   l,
		tiers:     fixed{tiers.Default()},
		maxExpiry: DefaultMaxExpiry,
		actor:     func(c *gin.Context) string { return c.RemoteIP() },
	}
	for _, opt := range opts {
		if opt == nil {
			panic("admin: Routes: an option is nil")
		}
		opt(r)
	}
	r.kill.limiter = l
	get := []string{http.MethodGet, http.MethodHead} // the server leaves HEAD's body out
	g.Match(get, "/usage", noStore, r.showUsage)
	g.DELETE("/usage", noStore, r.resetUsage)
	g.Match(get, "/kill-switch", noStore, r.showKillSwitch)
	g.PUT("/kill-switch", noStore, r.setKillSwitch)
}

func noStore(c *gin.Context) { c.Header("Cache-Control", "no-store") }
