package ginlimit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/tiers"
)

// A number that no option decides would be no limit at all, so the start fails.
func TestNumbersThatNothingDecidesPanic(t *testing.T) {
	plain := tiers.Limits{PerMinute: 5, PerDay: 100}
	with := func(set func(l *tiers.Limits)) *tiers.Store {
		l := plain
		set(&l)
		s, err := tiers.NewStore("free", map[tiers.Tier]tiers.Limits{"free": plain, "pro": l})
		require.NoError(t, err)
		return s
	}
	for want, set := range map[string]func(l *tiers.Limits){
		"tokens_per_minute, which nothing decides; add WithUsage": func(l *tiers.Limits) { l.TokensPerMinute = 1 },
		"tokens_per_day, which nothing decides; add WithUsage":    func(l *tiers.Limits) { l.TokensPerDay = 1 },
		"tokens_per_month, which nothing decides; add WithUsage":  func(l *tiers.Limits) { l.TokensPerMonth = 1 },
		"spend_per_day, which nothing decides; add WithUsage":     func(l *tiers.Limits) { l.SpendPerDay = 1 },
		"spend_per_month, which nothing decides; add WithUsage":   func(l *tiers.Limits) { l.SpendPerMonth = 1 },
		"concurrent, which nothing decides; add WithConcurrency":  func(l *tiers.Limits) { l.Concurrent = 1 },
	} {
		store, l := with(set), ginlimit.NewMemoryLimiter()
		require.PanicsWithValue(t, `ginlimit: New: tier "pro" has `+want, func() {
			ginlimit.New(l, resolver, ginlimit.WithTiers(store))
		})
		require.PanicsWithValue(t, `ginlimit: New: tier "pro" in scope "images" has `+want, func() {
			ginlimit.New(l.Scope("api"), resolver, ginlimit.WithScope("images", store))
		})
	}
	require.NotPanics(t, func() {
		ginlimit.New(ginlimit.NewMemoryLimiter(), resolver, ginlimit.WithTiers(with(func(l *tiers.Limits) {
			l.TokensPerDay, l.SpendPerMonth, l.Concurrent = tiers.Unlimited, tiers.Unlimited, tiers.Unlimited
		})))
	})
}
