package ginlimit_test

import (
	"errors"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/tiers"
)

// A request may cost several, all or none; what cannot be is refused. Q33, C5, C6.
func TestWeights(t *testing.T) {
	weight := ginlimit.WithWeight(func(c *gin.Context) (int, error) {
		if c.GetHeader("Weight") == "" {
			return 0, errors.New("secret: no weight")
		}
		return strconv.Atoi(c.GetHeader("Weight"))
	})
	for _, opts := range [][]ginlimit.Option{{}, {ginlimit.WithBoundedWindows()}} {
		onEach(t, func(t *testing.T, l *ginlimit.Limiter) {
			a := serve(t, ginlimit.New(l, resolver, append(opts, ginlimit.WithTiers(table(t, 10, 20)), weight)...))
			limits := tiers.Limits{PerMinute: 10, PerDay: 20}
			for _, step := range []struct {
				weight, want, code string
				used               int
			}{
				{"4", "10 6 minute", "", 4},
				{"5", "10 1 minute", "", 9},
				{"2", "10 0 minute", "rate_limit_exceeded", 9},
				{"1", "10 0 minute", "", 10},
				{"0", "", "", 10},
				{"11", "", "request_exceeds_budget", 10},
				{"-1", "", "invalid_request", 10},
				{"1001", "", "invalid_request", 10},
				{"", "", "invalid_request", 10},
			} {
				r := a.as("alice", "Weight", step.weight)
				if step.want == "" {
					require.Empty(t, r.Header.Get(ginlimit.HeaderLimit), step.weight)
				} else {
					require.Equal(t, step.want, r.limits(t), step.weight)
				}
				if step.code == "" {
					require.Equal(t, http.StatusOK, r.StatusCode, "%s %s", step.weight, r.body)
				} else {
					require.Equal(t, step.code, r.apiError(t).Code, step.weight)
					require.NotContains(t, r.body, "secret")
				}
				found := used(t, l, "alice", limits)
				require.Equal(t, map[string]int{"1m0s": step.used, "24h0m0s": step.used}, found, step.weight)
			}
			require.NoError(t, l.Reset(t.Context(), "alice"))
			require.Equal(t, "10 6 minute", a.as("alice", "Weight", "4").limits(t))
		})
	}
}

// What a weighted request took goes back whole.
func TestWeightsAreGivenBack(t *testing.T) {
	onEach(t, func(t *testing.T, l *ginlimit.Limiter) {
		weight := ginlimit.WithWeight(func(*gin.Context) (int, error) { return 4, nil })
		refund := ginlimit.WithRefundOn(func(*gin.Context) bool { return true })
		a := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 10, 20)), weight, refund))
		for range 5 {
			require.Equal(t, "10 6 minute", a.as("alice").limits(t))
			require.Eventually(t, func() bool {
				return used(t, l, "alice", tiers.Limits{PerMinute: 10, PerDay: 20})["1m0s"] == 0
			}, 5*time.Second, time.Millisecond)
		}
	})
}

// An organisation's budget beside each user's: all or none, and the rejection names it. Q29.
func TestOrganisations(t *testing.T) {
	for name, limiter := range map[string]func(t *testing.T) *ginlimit.Limiter{
		"Redis": limiters["Redis"], "memory": limiters["memory"], "Cluster": upstreams["Cluster"],
		"hash tags": func(t *testing.T) *ginlimit.Limiter {
			return ginlimit.NewLimiter(redistest.Start(t).Client(t), ginlimit.WithHashTags())
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := limiter(t)
			orgs := ginlimit.TierResolverFunc(func(c *gin.Context) (ginlimit.Subject, error) {
				switch org := c.GetHeader("Org"); org {
				case "":
					return ginlimit.Subject{}, ginlimit.ErrNoSubject
				case "down":
					return ginlimit.Subject{}, errors.New("secret: database")
				default:
					return ginlimit.Subject{UserID: org, Tier: "team"}, nil
				}
			})
			limits := tiers.Limits{PerMinute: 3, PerDay: 5, TokensPerMinute: 1000}
			teams, err := tiers.NewStore("team", map[tiers.Tier]tiers.Limits{"team": limits})
			require.NoError(t, err)
			a := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 2, 9)),
				ginlimit.WithScopeFor("org", teams, orgs), ginlimit.WithUsage(headerUsage)))
			as := func(user, org string) answer { return a.as(user, "Org", org, "Tokens", "100") }

			require.Equal(t, "2 1 minute", as("alice", "acme").limits(t))
			require.Equal(t, "2 0 minute", as("alice", "acme").limits(t))
			r := as("alice", "acme")
			require.Equal(t, http.StatusTooManyRequests, r.StatusCode)
			require.NotContains(t, r.body, `"scope"`, "her own")
			require.Equal(t, "3 0 minute", as("bob", "acme").limits(t), "the organisation's is tighter")
			r = as("carol", "acme")
			require.Equal(t, http.StatusTooManyRequests, r.StatusCode)
			require.Contains(t, r.body, `"scope":"org"`)
			require.Equal(t, map[string]int{"1m0s": 0}, used(t, l, "carol", tiers.Limits{PerMinute: 2}))
			require.Equal(
				t,
				map[string]int{"1m0s": 3, "24h0m0s": 3, "tokens1m0s": 300},
				used(t, l.Scope("org"), "acme", limits),
			)

			require.Equal(t, http.StatusOK, as("carol", "other").StatusCode)
			require.Equal(t, http.StatusOK, as("carol", "").StatusCode, "no organisation, no such budget")
			r = as("dave", "down")
			require.Equal(t, http.StatusServiceUnavailable, r.StatusCode)
			require.Equal(t, "tier_lookup_failed", r.apiError(t).Code)
		})
	}
}
