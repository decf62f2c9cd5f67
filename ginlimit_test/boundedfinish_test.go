package ginlimit_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/tiers"
)

// Where nothing is settled, a request is one script call, with bounded windows too; a refund is one more.
func TestCallsOfARequest(t *testing.T) {
	plain := func(*tiers.Limits) {}
	for name, tt := range map[string]struct {
		change func(*tiers.Limits)
		opt    ginlimit.Option
		calls  int
	}{
		"atomic windows":              {plain, ginlimit.WithAtomicWindows(), 1},
		"bounded windows":             {plain, ginlimit.WithBoundedWindows(), 1},
		"usage that the tier has not": {plain, ginlimit.WithUsage(headerUsage), 1},
		"tokens": {func(l *tiers.Limits) { l.TokensPerDay = 1000 },
			ginlimit.WithUsage(headerUsage), 2},
		"slots": {func(l *tiers.Limits) { l.Concurrent = 3 }, ginlimit.WithConcurrency(), 2},
	} {
		t.Run(name, func(t *testing.T) {
			srv := redistest.Start(t)
			table, _ := plenty(t, tt.change)
			refund, done := false, make(chan bool, 1)
			a := serve(t, func(c *gin.Context) {
				c.Next()
				done <- true
			}, ginlimit.New(ginlimit.NewLimiter(srv.Client(t)), resolver, ginlimit.WithTiers(table), tt.opt),
				func(c *gin.Context) {
					if refund {
						ginlimit.AdmissionFrom(c).Refund()
					}
				})
			calls := func() int {
				srv.ResetStats(t)
				require.Equal(t, http.StatusOK, a.as("alice", "Tokens", "1").StatusCode)
				<-done
				return srv.Calls(t, "evalsha")
			}
			refund = true
			calls() // loads the scripts
			require.Equal(t, 2, calls())
			refund = false
			require.Equal(t, tt.calls, calls())
		})
	}
}

// What a provider fails after minutes comes back as well, of windows of either form. J3.
func TestRefundAfterMinutes(t *testing.T) {
	for name, opts := range map[string][]ginlimit.Option{
		"exact":   {ginlimit.WithAtomicWindows()},
		"bounded": {ginlimit.WithBoundedWindows()},
		"tokens":  {ginlimit.WithBoundedWindows(), ginlimit.WithUsage(headerUsage)},
	} {
		for _, store := range []string{"redis", "memory"} {
			t.Run(name+" "+store, func(t *testing.T) {
				c := newClock()
				l := ginlimit.NewMemoryLimiter(ginlimit.WithClock(c.now))
				if store == "redis" {
					l = ginlimit.NewLimiter(redistest.Client(t), ginlimit.WithClock(c.now))
				}
				table, limits := plenty(t, func(l *tiers.Limits) {
					if name == "tokens" {
						l.TokensPerDay = 1000
					}
				})
				id, done := redistest.ID(t), make(chan bool, 1)
				a := serve(t, func(c *gin.Context) {
					c.Next()
					done <- true
				}, ginlimit.New(l, resolver, append(
					opts,
					ginlimit.WithTiers(table),
					ginlimit.WithRefundOn(
						func(c *gin.Context) bool { return c.Writer.Status() >= 500 },
					),
				)...), func(ctx *gin.Context) {
					if ctx.GetHeader("Slow") != "" {
						c.advance(4 * time.Minute)
						_, err := l.Check(ctx, id, 1000, time.Minute) // trims the minute
						require.NoError(t, err)
						ctx.AbortWithStatus(http.StatusBadGateway)
					}
				})
				require.Equal(t, http.StatusOK, a.as(id, "Tokens", "7").StatusCode)
				<-done
				before := used(t, l, id, limits)
				require.Equal(t, http.StatusBadGateway, a.as(id, "Tokens", "7", "Slow", "1").StatusCode)
				<-done
				after := used(t, l, id, limits)
				require.Equal(t, before["24h0m0s"], after["24h0m0s"])
				require.Equal(t, before["tokens24h0m0s"], after["tokens24h0m0s"])
			})
		}
	}
}
