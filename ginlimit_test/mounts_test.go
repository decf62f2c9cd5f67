package ginlimit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/tiers"
)

// R28: of two mounts on one scope, one that forgot its tier table would quietly mean the default's.
func TestAMountWithoutItsTableBesideOneWithPanics(t *testing.T) {
	base := table(t, 9, 9)
	without := func(l *ginlimit.Limiter) {
		ginlimit.New(l, resolver, ginlimit.WithScope("images", base))
	}
	with := func(l *ginlimit.Limiter) { ginlimit.New(l, resolver, ginlimit.WithTiers(base)) }
	for name, mount := range map[string]func(l *ginlimit.Limiter){
		"with, without": func(l *ginlimit.Limiter) { with(l); without(l) },
		"without, with": func(l *ginlimit.Limiter) { without(l); with(l) },
		"in a scope":    func(l *ginlimit.Limiter) { with(l.Scope("a")); without(l.Scope("a")) },
		"a scope that has one by WithScope": func(l *ginlimit.Limiter) {
			without(l)
			ginlimit.New(l.Scope("images"), resolver)
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() { require.Contains(t, fmt.Sprint(recover()), "add WithTiers") }()
			mount(ginlimit.NewMemoryLimiter())
		})
	}
	l := ginlimit.NewMemoryLimiter()
	with(l)
	with(l)
	without(l.Scope("b"))
	without(ginlimit.NewMemoryLimiter())
}

// R29: an unknown tier is warned about once a name, of a bounded number of them, and marked in the event.
func TestAnUnknownTierIsTold(t *testing.T) {
	logs := captureLogs(t)
	var marked int
	observer := ginlimit.ObserverFunc(func(_ context.Context, e ginlimit.Event) {
		require.Equal(t, tiers.Free, e.Tier)
		if e.UnknownTier {
			marked++
		}
	})
	api := serve(t, ginlimit.New(ginlimit.NewMemoryLimiter(), resolver,
		ginlimit.WithTiers(table(t, 1_000, 1_000)),
		ginlimit.WithObserver(observer)))
	for range 3 {
		require.Equal(t, "1000", api.as("alice", headerTier, "Gold").Header.Get("X-RateLimit-Limit"))
	}
	api.as("alice")
	api.as("alice", headerTier, "free")
	require.Equal(t, 3, marked)
	require.Equal(t, 1, strings.Count(logs.String(), "no table names"), logs.String())
	require.Contains(t, logs.String(), "Gold")
	for i := range 300 {
		api.as("alice", headerTier, fmt.Sprint("tier", i, strings.Repeat("x", 200)))
	}
	require.LessOrEqual(t, strings.Count(logs.String(), "no table names"), 100)
	require.NotContains(t, logs.String(), strings.Repeat("x", 100))
}

// A scope whose table lacks a tier of the mount is told at once, and not when the first user complains.
func TestATierThatAScopeLacksIsTold(t *testing.T) {
	logs := captureLogs(t)
	images, err := tiers.NewStore("free", map[tiers.Tier]tiers.Limits{
		"free": {PerMinute: 1, PerDay: 1}, "pro": {PerMinute: 2, PerDay: 2}})
	require.NoError(t, err)
	ginlimit.New(ginlimit.NewMemoryLimiter(), resolver, ginlimit.WithScope("images", images))
	require.Contains(t, logs.String(), "scope=images tiers=[enterprise] fallback=free")
	before := logs.String()
	ginlimit.New(ginlimit.NewMemoryLimiter(), resolver, ginlimit.WithScope("images", tiers.Default()))
	require.Equal(t, before, logs.String())
}

// The same holds for the tier of the subject of a WithScopeFor.
func TestAnUnknownTierOfAnOrganisationIsTold(t *testing.T) {
	logs := captureLogs(t)
	var marked []bool
	observer := ginlimit.ObserverFunc(func(_ context.Context, e ginlimit.Event) {
		marked = append(marked, e.UnknownTier)
	})
	orgs := ginlimit.TierResolverFunc(func(c *gin.Context) (ginlimit.Subject, error) {
		return ginlimit.Subject{UserID: "acme", Tier: tiers.Tier(c.GetHeader("Org-Tier"))}, nil
	})
	api := serve(t, ginlimit.New(ginlimit.NewMemoryLimiter(), resolver, ginlimit.WithTiers(table(t, 10, 10)),
		ginlimit.WithScopeFor("org", table(t, 10, 10), orgs), ginlimit.WithObserver(observer)))
	for _, tier := range []string{"Golden", "Golden", "", "free"} {
		require.Equal(t, http.StatusOK, api.as("alice", headerTier, "free", "Org-Tier", tier).StatusCode)
	}
	require.Equal(t, []bool{true, true, false, false}, marked)
	require.Equal(t, 1, strings.Count(logs.String(), "the table of a scope does not name"), logs.String())
	require.Contains(t, logs.String(), `scope=org tier="\"Golden\""`)
	api.as("alice", headerTier, "Golden")
	require.Equal(t, 1, strings.Count(logs.String(), "no table names"), "another table, another line")
}

// R30: a rejection names the scope whose budget is spent, in the body and in the event.
func TestARejectionNamesItsScope(t *testing.T) {
	for scope, limits := range map[string][2]int{"images": {9, 1}, "": {1, 9}} {
		var rejected ginlimit.Decision
		observer := ginlimit.ObserverFunc(func(_ context.Context, e ginlimit.Event) {
			if e.Outcome == ginlimit.Rejected {
				rejected = e.Decision
			}
		})
		api := serve(t, ginlimit.New(ginlimit.NewMemoryLimiter(), resolver,
			ginlimit.WithTiers(table(t, limits[0], 9)),
			ginlimit.WithScope("images", table(t, limits[1], 9)), ginlimit.WithObserver(observer)))
		api.as("alice")
		r := api.as("alice")
		require.Equal(t, http.StatusTooManyRequests, r.StatusCode)
		var body map[string]any
		require.NoError(t, json.Unmarshal([]byte(r.body), &body))
		named, there := body["scope"]
		require.Equal(t, scope != "", there)
		if there {
			require.Equal(t, scope, named)
		}
		require.Equal(t, scope, rejected.Scope)
	}
}

// R22: a client that leaves during the look-up is no failure, and an outage of the look-up is a line a
// second.
func TestLookUpsThatFail(t *testing.T) {
	logs := captureLogs(t)
	var leave context.CancelFunc
	opaque := false // a driver's own words for a call that was cancelled
	failing := ginlimit.TierResolverFunc(func(c *gin.Context) (ginlimit.Subject, error) {
		if leave != nil {
			leave()
			if opaque {
				return ginlimit.Subject{}, errors.New("pq: canceling statement due to user request")
			}
			return ginlimit.Subject{}, fmt.Errorf("lookup: %w", c.Request.Context().Err())
		}
		return ginlimit.Subject{}, fmt.Errorf("lookup: connection refused")
	})
	cancelling := true
	api := serve(t, func(c *gin.Context) {
		if cancelling {
			ctx, cancel := context.WithCancel(c.Request.Context())
			c.Request, leave = c.Request.WithContext(ctx), cancel
		} else {
			leave = nil
		}
	}, ginlimit.New(ginlimit.NewMemoryLimiter(), failing))
	for _, opaque = range []bool{false, true} {
		require.Equal(t, 499, api.as("alice").StatusCode)
	}
	require.Empty(t, logs.String())
	cancelling = false
	for range 200 {
		require.Equal(t, "tier_lookup_failed", api.as("alice").apiError(t).Code)
	}
	lines := strings.Count(logs.String(), "tier lookup failed")
	require.Positive(t, lines)
	require.Less(t, lines, 20, "about one a second")
}
