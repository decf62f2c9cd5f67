package ginlimit_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/tiers"
)

func TestNobodySignedIn(t *testing.T) {
	for name, r := range map[string]ginlimit.TierResolver{
		"nothing in the context": resolver,
		"ErrNoSubject": ginlimit.TierResolverFunc(func(*gin.Context) (ginlimit.Subject, error) {
			return ginlimit.Subject{}, ginlimit.ErrNoSubject
		}),
		"wrapped ErrNoSubject": ginlimit.TierResolverFunc(func(*gin.Context) (ginlimit.Subject, error) {
			return ginlimit.Subject{}, fmt.Errorf("session: %w", ginlimit.ErrNoSubject)
		}),
		"an empty id": ginlimit.TierResolverFunc(func(*gin.Context) (ginlimit.Subject, error) {
			return ginlimit.Subject{Tier: tiers.Pro}, nil
		}),
	} {
		t.Run(name, func(t *testing.T) {
			api := serve(t, ginlimit.New(ginlimit.NewMemoryLimiter(), r))
			got := api.get("/v1/chat")
			require.Equal(t, http.StatusUnauthorized, got.StatusCode)
			require.Equal(t, "unauthenticated", got.apiError(t).Code)
			require.Equal(t, "authentication_error", got.apiError(t).Type)
			require.Equal(t, "no-store", got.Header.Get("Cache-Control"))
			require.Zero(t, api.Handled.Load(), "never unlimited")
		})
	}
}

// A caller whom an outer limiter has counted and an inner one cannot name stays counted there:
// guessing credentials is not free.
func TestNobodySignedInBehindAnotherLimiter(t *testing.T) {
	byIP := ginlimit.New(ginlimit.NewMemoryLimiter(), ginlimit.ByClientIP(tiers.Free),
		ginlimit.WithTiers(table(t, 2, 9)))
	api := serve(t, byIP, ginlimit.New(ginlimit.NewMemoryLimiter(), resolver))
	for _, want := range []int{http.StatusUnauthorized, http.StatusUnauthorized, http.StatusTooManyRequests} {
		r := api.get("/v1/chat")
		require.Equal(t, want, r.StatusCode)
		require.Equal(t, want == http.StatusTooManyRequests, r.Header.Get("X-RateLimit-Limit") != "")
	}
}

func TestTierLookupFails(t *testing.T) {
	srv := redistest.Start(t)
	logs := captureLogs(t)
	failing := ginlimit.TierResolverFunc(func(*gin.Context) (ginlimit.Subject, error) {
		return ginlimit.Subject{}, errors.New("dial tcp 10.0.0.7:5432: refused")
	})
	l := ginlimit.NewLimiter(srv.Client(t))
	outer := ginlimit.New(l.Scope("outer"), resolver)
	api := serve(t, outer, ginlimit.New(l, failing))
	r := api.as("alice")
	require.Equal(t, http.StatusServiceUnavailable, r.StatusCode)
	require.Equal(t, "tier_lookup_failed", r.apiError(t).Code)
	require.Equal(t, "api_error", r.apiError(t).Type)
	require.Equal(t, "no-store", r.Header.Get("Cache-Control"))
	require.NotContains(t, r.body, "5432", "no raw error text")
	require.Empty(t, r.Header.Values("X-RateLimit-Remaining"), "what the outer limiter told no longer holds")
	require.Contains(t, logs.String(), "10.0.0.7:5432", "the log has it")
	require.Zero(t, api.Handled.Load())
	require.Empty(t, srv.Client(t).Keys(t.Context(), "*").Val(),
		"nothing consumed, in the limiter before it too")
}

// Two users behind one address have budgets of their own.
func TestUsersBehindOneAddress(t *testing.T) {
	api := serve(t, ginlimit.New(ginlimit.NewMemoryLimiter(), resolver, ginlimit.WithTiers(table(t, 1, 9))))
	require.Equal(t, http.StatusOK, api.as("alice").StatusCode)
	require.Equal(t, http.StatusOK, api.as("bob").StatusCode)
	require.Equal(t, http.StatusTooManyRequests, api.as("alice").StatusCode)
}
