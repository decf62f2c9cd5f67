package budget

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/tiers"
)

func TestOf(t *testing.T) {
	minute, hour := Dimension{Window: Minute}, Dimension{Window: Hour}
	day, month := Dimension{Window: Day}, Dimension{Window: Month}
	for name, tt := range map[string]struct {
		limits tiers.Limits
		want   []Budget
	}{
		"minute and day": {
			tiers.Limits{PerMinute: 5, PerDay: 100},
			[]Budget{{minute, 5}, {day, 100}},
		},
		"all, shortest first": {
			tiers.Limits{PerMonth: 4, PerDay: 3, PerHour: 2, PerMinute: 1},
			[]Budget{{minute, 1}, {hour, 2}, {day, 3}, {month, 4}},
		},
		"unlimited minute and day": {
			tiers.Limits{PerMinute: tiers.Unlimited, PerHour: 2, PerDay: tiers.Unlimited, PerMonth: 4},
			[]Budget{{hour, 2}, {month, 4}},
		},
		"unlimited hour and month": {
			tiers.Limits{PerMinute: 1, PerHour: tiers.Unlimited, PerDay: 3, PerMonth: tiers.Unlimited},
			[]Budget{{minute, 1}, {day, 3}},
		},
		"all unlimited": {tiers.Limits{
			PerMinute: tiers.Unlimited, PerHour: tiers.Unlimited,
			PerDay: tiers.Unlimited, PerMonth: tiers.Unlimited,
		}, nil},
		"nothing, as of a zero Store": {tiers.Limits{}, []Budget{{minute, 0}, {day, 0}}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tt.want, Of(tt.limits, Dimensions{})) })
	}
}

func TestNamesOfDimensions(t *testing.T) {
	for _, tt := range []struct {
		d         Dimension
		name, key string
		form      Form
	}{
		{Dimension{Window: Minute}, "minute", "60", Log},
		{Dimension{Window: Hour}, "hour", "3600", Log},
		{Dimension{Window: Day, Bounded: true}, "day", "86400:requests", Sum},
		{Dimension{Window: Month}, "month", "2592000", Log},
		{Dimension{Window: 90 * time.Second}, "90s", "90", Log},
		{Dimension{Window: Minute, Unit: Tokens}, "tokens-minute", "60:tokens", Sum},
		{Dimension{Window: Month, Unit: Spend}, "spend-month", "2592000:spend", Sum},
		{Dimension{Unit: Concurrent}, "concurrent", "leases", Lease},
	} {
		require.Equal(t, tt.name, tt.d.String())
		require.Equal(t, "ratelimit:alice:images:"+tt.key, Names{Scope: "images"}.Key("alice", tt.d))
		require.Equal(t, tt.form, tt.d.Form())
	}
}

func TestOfWithMoreDimensions(t *testing.T) {
	limits := tiers.Limits{
		PerMinute: 5, PerHour: 6, PerDay: 7,
		TokensPerMinute: 8, TokensPerDay: tiers.Unlimited, SpendPerMonth: 9, Concurrent: 3,
	}
	names := func(on Dimensions) (all []string) {
		for _, b := range Of(limits, on) {
			all = append(all, fmt.Sprint(b.Dimension, " ", b.Form(), " ", b.Limit))
		}
		return all
	}
	requests := []string{"minute log 5", "hour log 6", "day log 7"}
	require.Equal(t, requests, names(Dimensions{}))
	require.Equal(t, append(requests, "tokens-minute sum 8", "spend-month sum 9"),
		names(Dimensions{Usage: true}))
	require.Equal(t, append(requests, "concurrent lease 3"), names(Dimensions{Concurrent: true}))
	require.Equal(t, []string{"minute log 5", "hour sum 6", "day sum 7"}, names(Dimensions{Bounded: true}))
}
