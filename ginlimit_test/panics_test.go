package ginlimit_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/tiers"
)

// recovers answers a panic with 500, as a middleware before the limiter does.
func recovers(c *gin.Context) {
	defer func() {
		if recover() != nil {
			c.AbortWithStatus(http.StatusInternalServerError)
		}
	}()
	c.Next()
}

// An observer that panics leaves nothing taken, and no lease that is renewed for ever.
func TestAnObserverThatPanics(t *testing.T) {
	tokens, limits := plenty(t, func(l *tiers.Limits) { l.TokensPerDay, l.Concurrent = 1000, 2 })
	onEach(t, func(t *testing.T, l *ginlimit.Limiter) {
		panics := true
		a := serve(t, recovers, ginlimit.New(l, resolver, ginlimit.WithTiers(tokens), ginlimit.WithConcurrency(),
			ginlimit.WithUsage(headerUsage), ginlimit.WithObserver(ginlimit.ObserverFunc(
				func(context.Context, ginlimit.Event) {
					if panics {
						panic("mine")
					}
				}))))
		for range 3 {
			require.Equal(t, http.StatusInternalServerError, a.as("alice", "Tokens", "100").StatusCode)
		}
		require.Zero(t, a.Handled.Load())
		found := used(t, l, "alice", limits)
		require.Equal(t, []int{0, 0, 0}, []int{found["1m0s"], found["tokens24h0m0s"], found["concurrent"]})
		panics = false
		require.Equal(t, http.StatusOK, a.as("alice", "Tokens", "100").StatusCode)
	})
}

// A handler that panics before its answer began is a 500 for WithRefundOn, and one that panics later is not.
// J3.
func TestAPanicIsRefunded(t *testing.T) {
	tokens, limits := plenty(t, func(l *tiers.Limits) { l.TokensPerDay = 1000 })
	refund := ginlimit.WithRefundOn(func(c *gin.Context) bool { return c.Writer.Status() >= 500 })
	onEach(t, func(t *testing.T, l *ginlimit.Limiter) {
		a := serve(t, recovers, ginlimit.New(l, resolver, ginlimit.WithTiers(tokens), refund,
			ginlimit.WithUsage(headerUsage)), func(c *gin.Context) {
			if c.GetHeader("Begin") != "" {
				_, _ = c.Writer.WriteString("data: 1\n\n")
			}
			panic("mine")
		})
		require.Equal(t, http.StatusInternalServerError, a.as("alice", "Tokens", "100").StatusCode)
		require.Equal(t, http.StatusOK, a.as("bob", "Tokens", "100", "Begin", "1").StatusCode)
		require.Eventually(t, func() bool {
			alice, bob := used(t, l, "alice", limits), used(t, l, "bob", limits)
			return alice["1m0s"] == 0 && alice["tokens24h0m0s"] == 0 &&
				bob["1m0s"] == 1 && bob["tokens24h0m0s"] == 100
		}, 5*time.Second, time.Millisecond)
	})
}
