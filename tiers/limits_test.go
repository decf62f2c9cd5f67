package tiers_test

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/tiers"
)

// most is the largest budget of tokens, and in millionths of money.
const most = 1 << 53

func TestLimits(t *testing.T) {
	for name, limits := range map[string]tiers.Limits{
		"all": {
			PerMinute: 5, PerHour: 50, PerDay: 100, PerMonth: 1000,
			TokensPerMinute: 1_000, TokensPerDay: 10_000, TokensPerMonth: 100_000,
			SpendPerDay: 2_500_000, SpendPerMonth: 25_000_000, Concurrent: 2,
		},
		"all alike":     {PerMinute: 5, PerHour: 5, PerDay: 5, PerMonth: 5, SpendPerDay: 1, SpendPerMonth: 1},
		"all unlimited": allUnlimited(),
		"the largest": {
			PerMinute: math.MaxInt, PerDay: math.MaxInt, TokensPerDay: most, SpendPerDay: most,
			Concurrent: math.MaxInt,
		},
		"units are not compared": {
			PerMinute: 5, PerDay: 100, TokensPerMinute: 1, SpendPerDay: 1, Concurrent: 1000,
		},
		"a longer one is unlimited":       {PerMinute: 5, PerHour: 5, PerDay: -1, PerMonth: -1},
		"a shorter one is unlimited":      {PerMinute: -1, PerHour: -1, PerDay: 100, PerMonth: 100},
		"one between is unlimited":        {PerMinute: 5, PerHour: -1, PerDay: 5, PerMonth: 5},
		"one between is left out":         {PerMinute: 5, PerDay: 5},
		"tokens, a shorter one unlimited": {PerMinute: 5, PerDay: 5, TokensPerMinute: -1, TokensPerMonth: 7},
		"spend, a shorter one unlimited":  {PerMinute: 5, PerDay: 5, SpendPerDay: -1, SpendPerMonth: 7},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := tiers.NewStore("free", map[tiers.Tier]tiers.Limits{"free": limits})
			require.NoError(t, err)
			assert.Equal(t, limits, s.Lookup("free"))
		})
	}
}

func allUnlimited() tiers.Limits {
	var limits tiers.Limits
	for _, field := range reflect.ValueOf(&limits).Elem().Fields() {
		field.SetInt(tiers.Unlimited)
	}
	return limits
}

// Each number alone: unlimited is taken by every one, zero by those that are optional, other negatives by
// none.
func TestEachLimit(t *testing.T) {
	for field := range reflect.TypeFor[tiers.Limits]().Fields() {
		name, omitted, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		required := name == "per_minute" || name == "per_day"
		assert.Equal(t, required, omitted == "", name)
		assert.Equal(t, field.Tag.Get("yaml"), field.Tag.Get("json"), name)
		least := "1"
		if field.Type == reflect.TypeFor[tiers.Money]() {
			least = "0.000001"
		}
		with := func(value int64) error {
			limits := tiers.Limits{PerMinute: 5, PerDay: 5}
			reflect.ValueOf(&limits).Elem().FieldByIndex(field.Index).SetInt(value)
			_, err := tiers.NewStore("free", map[tiers.Tier]tiers.Limits{"free": limits})
			return err
		}
		require.NoError(t, with(tiers.Unlimited), name)
		require.NoError(t, with(5), name)
		if required {
			require.EqualError(t, with(0), "tiers: free."+name+": 0 is less than 1")
		} else {
			require.NoError(t, with(0), name)
		}
		for _, value := range []int64{-2, math.MinInt64} {
			shown := reflect.New(field.Type).Elem()
			shown.SetInt(value)
			want := "tiers: free." + name + ": " + text(shown) + " is less than " + least
			require.EqualError(t, with(value), want)
		}
		if summed := strings.HasPrefix(name, "tokens") || strings.HasPrefix(name, "spend"); summed {
			require.NoError(t, with(most), name)
			require.ErrorContains(t, with(most+1), name)
			require.ErrorContains(t, with(math.MaxInt64), " is more than 9007199254")
		}
	}
}

// text is how an error shows a number of Limits.
func text(number reflect.Value) string {
	if amount, ok := number.Interface().(tiers.Money); ok {
		return amount.String()
	}
	written, _ := json.Marshal(number.Interface())
	return string(written)
}

// No longer window allows less than a shorter one of its unit, whichever of those between are there.
func TestLongerWindowsAllowNoLess(t *testing.T) {
	for name, tc := range map[string]struct {
		limits tiers.Limits
		want   string
	}{
		"hour below minute": {
			tiers.Limits{PerMinute: 5, PerHour: 4, PerDay: 9},
			"per_hour: 4 is less than per_minute 5",
		},
		"day below hour": {
			tiers.Limits{PerMinute: 5, PerHour: 9, PerDay: 8},
			"per_day: 8 is less than per_hour 9",
		},
		"day below minute": {
			tiers.Limits{PerMinute: 5, PerHour: -1, PerDay: 4},
			"per_day: 4 is less than per_minute 5",
		},
		"month below day": {
			tiers.Limits{PerMinute: 5, PerDay: 9, PerMonth: 8},
			"per_month: 8 is less than per_day 9",
		},
		"month below hour": {
			tiers.Limits{PerMinute: 5, PerHour: 9, PerDay: -1, PerMonth: 8},
			"per_month: 8 is less than per_hour 9",
		},
		"month below minute": {
			tiers.Limits{PerMinute: 5, PerDay: -1, PerMonth: 4},
			"per_month: 4 is less than per_minute 5",
		},
		"hour, day and month below minute": {
			tiers.Limits{PerMinute: 9, PerHour: 6, PerDay: 7, PerMonth: 8},
			"per_hour: 6 is less than per_minute 9; free.per_day: 7 is less than per_minute 9; " +
				"free.per_month: 8 is less than per_minute 9",
		},
		"tokens of a day": {
			tiers.Limits{PerMinute: 5, PerDay: 9, TokensPerMinute: 1000, TokensPerDay: 999},
			"tokens_per_day: 999 is less than tokens_per_minute 1000",
		},
		"tokens of a month": {
			tiers.Limits{PerMinute: 5, PerDay: 9, TokensPerMinute: 1000, TokensPerMonth: 999},
			"tokens_per_month: 999 is less than tokens_per_minute 1000",
		},
		"tokens of a month below a day": {
			tiers.Limits{PerMinute: 5, PerDay: 9, TokensPerMinute: -1, TokensPerDay: 1000, TokensPerMonth: 999},
			"tokens_per_month: 999 is less than tokens_per_day 1000",
		},
		"money": {
			tiers.Limits{PerMinute: 5, PerDay: 9, SpendPerDay: 2_500_000, SpendPerMonth: 2_499_999},
			"spend_per_month: 2.499999 is less than spend_per_day 2.50",
		},
		"a number that is wrong is not compared": {
			tiers.Limits{PerMinute: 5, PerHour: -7, PerDay: 4},
			"per_hour: -7 is less than 1; free.per_day: 4 is less than per_minute 5",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tiers.NewStore("free", map[tiers.Tier]tiers.Limits{"free": tc.limits})
			require.EqualError(t, err, "tiers: free."+tc.want)
		})
	}
}

func TestLoadLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		file string
		want tiers.Limits
	}{
		"all": {
			withFree("per_hour: 50, per_month: 1000, tokens_per_minute: 1000, tokens_per_day: 10000, " +
				"tokens_per_month: 100000, spend_per_day: 2.50, spend_per_month: 25, concurrent: 2"),
			tiers.Limits{
				PerMinute: 5, PerHour: 50, PerDay: 100, PerMonth: 1000,
				TokensPerMinute: 1_000, TokensPerDay: 10_000, TokensPerMonth: 100_000,
				SpendPerDay: 2_500_000, SpendPerMonth: 25_000_000, Concurrent: 2,
			},
		},
		"all unlimited": {
			"tiers: {free: {per_minute: unlimited, per_hour: unlimited, per_day: unlimited, " +
				"per_month: unlimited, tokens_per_minute: unlimited, tokens_per_day: unlimited, " +
				"tokens_per_month: unlimited, spend_per_day: unlimited, spend_per_month: unlimited, " +
				"concurrent: unlimited}}",
			allUnlimited(),
		},
		"JSON": {
			`{"tiers":{"free":{"per_minute":"unlimited","per_day":100,"spend_per_day":0.000001}}}`,
			tiers.Limits{PerMinute: -1, PerDay: 100, SpendPerDay: 1},
		},
		"the largest": {
			withFree("tokens_per_day: 9007199254740992, spend_per_day: 9007199254.740992"),
			tiers.Limits{PerMinute: 5, PerDay: 100, TokensPerDay: most, SpendPerDay: most},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := tiers.Load(strings.NewReader(tc.file))
			require.NoError(t, err)
			assert.Equal(t, tc.want, s.Lookup("free"))
		})
	}
}

// What a program writes as JSON, a tier file may hold.
func TestLimitsAsJSON(t *testing.T) {
	limits := tiers.Limits{PerMinute: 5, PerDay: 100, TokensPerDay: 1000, SpendPerMonth: 2_500_000}
	written, err := json.Marshal(limits)
	require.NoError(t, err)
	require.JSONEq(t,
		`{"per_minute": 5, "per_day": 100, "tokens_per_day": 1000, "spend_per_month": 2.50}`, string(written))
	s, err := tiers.Load(strings.NewReader(`{"tiers": {"free": ` + string(written) + `}}`))
	require.NoError(t, err)
	assert.Equal(t, limits, s.Lookup("free"))
}
