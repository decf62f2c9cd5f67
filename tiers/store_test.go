package tiers_test

import (
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/tiers"
)

// good is a valid table; rows change one thing about it.
func good() map[tiers.Tier]tiers.Limits {
	return map[tiers.Tier]tiers.Limits{
		tiers.Free: {PerMinute: 5, PerDay: 100},
		tiers.Pro:  {PerMinute: 60, PerDay: 5000},
	}
}

func TestDefault(t *testing.T) {
	s := tiers.Default()
	table := make(map[tiers.Tier]tiers.Limits)
	for _, tier := range s.Tiers() {
		table[tier] = s.Lookup(tier)
	}
	assert.Equal(t, map[tiers.Tier]tiers.Limits{
		"free":       {PerMinute: 5, PerDay: 100},
		"pro":        {PerMinute: 60, PerDay: 5000},
		"enterprise": {PerMinute: 600, PerDay: 100_000},
	}, table)
	assert.Equal(t, tiers.Free, s.Fallback())

	same, err := tiers.NewStore(s.Fallback(), table)
	require.NoError(t, err, "the built-in table obeys the rules")
	assert.Equal(t, same, s)
}

func TestNewStore(t *testing.T) {
	for name, tc := range map[string]struct {
		fallback tiers.Tier
		table    map[tiers.Tier]tiers.Limits
	}{
		"two tiers":      {"pro", good()},
		"budgets of one": {"free", map[tiers.Tier]tiers.Limits{"free": {PerMinute: 1, PerDay: 1}}},
		"largest budgets": {
			"free",
			map[tiers.Tier]tiers.Limits{"free": {PerMinute: math.MaxInt, PerDay: math.MaxInt}},
		},
		"unusual name": {
			"täglich 100 %",
			map[tiers.Tier]tiers.Limits{"täglich 100 %": {PerMinute: 5, PerDay: 100}},
		},
		"a dot in the name": {"eu.free", map[tiers.Tier]tiers.Limits{"eu.free": {PerMinute: 5, PerDay: 100}}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := tiers.NewStore(tc.fallback, tc.table)
			require.NoError(t, err)
			for tier, limits := range tc.table {
				assert.Equal(t, limits, s.Lookup(tier))
			}
			assert.Equal(t, tc.fallback, s.Fallback())
			assert.Equal(t, tc.table[tc.fallback], s.Lookup("no such tier"))
		})
	}
}

func TestNewStoreRefuses(t *testing.T) {
	limits := func(perMinute, perDay int) map[tiers.Tier]tiers.Limits {
		table := good()
		table["free"] = tiers.Limits{PerMinute: perMinute, PerDay: perDay}
		return table
	}
	named := func(name tiers.Tier) map[tiers.Tier]tiers.Limits {
		table := good()
		table[name] = tiers.Limits{PerMinute: 5, PerDay: 100}
		return table
	}
	for name, tc := range map[string]struct {
		fallback tiers.Tier
		table    map[tiers.Tier]tiers.Limits
		want     string
	}{
		"nil table":              {"free", nil, "tiers: the table is empty"},
		"empty table":            {"free", map[tiers.Tier]tiers.Limits{}, "tiers: the table is empty"},
		"empty fallback":         {"", good(), "tiers: fallback is empty"},
		"unknown fallback":       {"gold", good(), "tiers: fallback: gold is not in the table"},
		"fallback in other case": {"Free", good(), "tiers: fallback: Free is not in the table"},
		"unreadable fallback":    {"a\nb", good(), `tiers: fallback "a\nb" has U+000A, which does not show`},
		"no budgets": {
			"free",
			limits(0, 0),
			"tiers: free.per_minute: 0 is less than 1; free.per_day: 0 is less than 1",
		},
		"no minute budget":       {"free", limits(0, 100), "tiers: free.per_minute: 0 is less than 1"},
		"negative minute budget": {"free", limits(-5, 100), "tiers: free.per_minute: -5 is less than 1"},
		"no day budget":          {"free", limits(5, 0), "tiers: free.per_day: 0 is less than 1"},
		"negative day budget":    {"free", limits(5, -100), "tiers: free.per_day: -100 is less than 1"},
		"day below minute":       {"free", limits(5, 3), "tiers: free.per_day: 3 is less than per_minute 5"},
		"day just below minute":  {"free", limits(5, 4), "tiers: free.per_day: 4 is less than per_minute 5"},
		"empty name":             {"free", named(""), `tiers: tier name "" is empty`},
		"newline in name": {
			"free",
			named("a\nb"),
			`tiers: tier name "a\nb" has U+000A, which does not show`,
		},
		"NUL in name": {
			"free",
			named("a\x00"),
			`tiers: tier name "a\x00" has U+0000, which does not show`,
		},
		"next line in name": {
			"free",
			named("a\u0085b"),
			`tiers: tier name "a\u0085b" has U+0085, which does not show`,
		},
		"leading blank in name": {
			"free",
			named(" a"),
			`tiers: tier name " a" begins or ends with a space (U+0020)`,
		},
		"trailing blank in name": {
			"free",
			named("a "),
			`tiers: tier name "a " begins or ends with a space (U+0020)`,
		},
		"no-break space at end": {
			"free",
			named("a\u00a0"),
			`tiers: tier name "a\u00a0" has U+00A0, which does not show`,
		},
		"name of one blank":      {"free", named(" "), `tiers: tier name " " begins or ends with a space (U+0020)`},
		"name that is not UTF-8": {"free", named("a\xff"), `tiers: tier name "a\xff" is not UTF-8`},
		"quotes in name":         {`"`, good(), `tiers: fallback: "\"" is not in the table`},
		"both budgets": {
			"free",
			limits(-2, -3),
			"tiers: free.per_minute: -2 is less than 1; free.per_day: -3 is less than 1",
		},
		"no budgets, odd name": {
			"free",
			map[tiers.Tier]tiers.Limits{"free": {PerMinute: 1, PerDay: 1}, "a\x00": {}},
			`tiers: tier name "a\x00" has U+0000, which does not show; "a\x00".per_minute: 0 is less than 1; ` +
				`"a\x00".per_day: 0 is less than 1`},
		"long name is cut short": {
			tiers.Tier(strings.Repeat("a", 1000)),
			good(),
			"tiers: fallback: " + strings.Repeat("a", 80) + "… is not in the table",
		},
		"cut between characters": {
			tiers.Tier("a" + strings.Repeat("é", 1000)),
			good(),
			"tiers: fallback: a" + strings.Repeat("é", 39) + "… is not in the table",
		},
		"cut where it is a blank": {
			tiers.Tier(strings.Repeat(" ", 1000)),
			good(),
			`tiers: fallback "` + strings.Repeat(" ", 80) + `\u2026" begins or ends with a space (U+0020)`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := tiers.NewStore(tc.fallback, tc.table)
			require.EqualError(t, err, tc.want)
			assert.Nil(t, s)
		})
	}
}

func TestNewStoreListsProblemsByTier(t *testing.T) {
	table := map[tiers.Tier]tiers.Limits{
		"d":  {PerDay: 1},
		"b":  {PerMinute: 2, PerDay: 1},
		"a":  {PerMinute: 1, PerDay: 1},
		"c ": {PerMinute: 1, PerDay: 1},
	}
	want := "tiers: b.per_day: 1 is less than per_minute 2; " +
		`tier name "c " begins or ends with a space (U+0020); ` +
		"d.per_minute: 0 is less than 1; fallback: gold is not in the table"
	for range 20 { // Go shuffles maps
		_, err := tiers.NewStore("gold", table)
		require.EqualError(t, err, want)
	}
}

func TestNewStoreListsFewProblems(t *testing.T) {
	table := make(map[tiers.Tier]tiers.Limits)
	for _, name := range strings.Split("abcdefghij", "") {
		table[tiers.Tier(name)] = tiers.Limits{PerDay: 1}
	}
	_, err := tiers.NewStore("a", table)
	require.ErrorContains(t, err, "h.per_minute: 0 is less than 1; and 2 more")
	assert.NotContains(t, err.Error(), "i.per_minute")
}

func TestStoreIsImmutable(t *testing.T) {
	table := good()
	s, err := tiers.NewStore("free", table)
	require.NoError(t, err)

	table["free"] = tiers.Limits{PerMinute: 1_000_000, PerDay: 1_000_000}
	table["new"] = tiers.Limits{PerMinute: 1, PerDay: 1}
	s.Tiers()[0] = "overwritten"

	assert.Equal(t, tiers.Limits{PerMinute: 5, PerDay: 100}, s.Lookup("free"))
	assert.Equal(t, []tiers.Tier{"free", "pro"}, s.Tiers())
}

func TestTiersAreSorted(t *testing.T) {
	assert.Equal(t, []tiers.Tier{"enterprise", "free", "pro"}, tiers.Default().Tiers())
}

func TestLookup(t *testing.T) {
	s := tiers.Default()
	free := tiers.Limits{PerMinute: 5, PerDay: 100}
	for tier, want := range map[tiers.Tier]tiers.Limits{
		"pro":     {PerMinute: 60, PerDay: 5000},
		"Pro":     free,
		" pro":    free,
		"":        free,
		"pro\x00": free,
	} {
		assert.Equal(t, want, s.Lookup(tier), "tier %q", tier)
	}
	allocs := testing.AllocsPerRun(100, func() { s.Lookup("pro"); s.Lookup("gold") })
	assert.Zero(t, allocs, "Lookup runs on each request")
	assert.Zero(t, new(tiers.Store).Lookup("pro"), "the zero Store grants nothing")
}

// Validation builds its validator on first use: run with -race, many first users at once.
func TestConcurrentUse(t *testing.T) {
	s := tiers.Default()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			_, err := tiers.NewStore("free", good())
			assert.NoError(t, err)
			assert.Equal(t, 60, s.Lookup("pro").PerMinute)
			assert.Len(t, s.Tiers(), 3)
		})
	}
	wg.Wait()
}
