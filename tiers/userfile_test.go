package tiers_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/tiers"
)

// What an operator may get wrong about single users is told with line, section and rule.
func TestMistakesAboutUsersAreLocated(t *testing.T) {
	longest := strings.Repeat("x", 256)
	rows := map[string]mistake{
		"overrides of nothing": {
			free + "overrides:\n", "line 3: overrides: want a mapping from users to limits, got nothing",
		},
		"overrides of null": {
			free + "overrides: null\n", "line 3: overrides: want a mapping from users to limits, got null",
		},
		"an override of nothing": {
			free + "overrides: {alice: }\n", "line 3: overrides.alice: want a mapping of limits, got nothing",
		},
		"on two lists": {
			free + "allow:\n- bob\n- a\ndeny:\n- a\n", "line 7: deny: a is there already, in allow",
		},
		"with an override, whatever comes first": {
			"deny: [a]\n" + free + "overrides:\n  a: {per_minute: 1, per_day: 1, until: 2027-01-01T00:00:00Z}\n",
			"line 1: deny: a is there already, in overrides",
		},
		"an override of a long id": {
			free + "overrides: {? " + longest + "x : {}}\n",
			`line 3: overrides: id "` + longest[:80] + `\u2026" is longer than 256 bytes`,
		},
		"an override of an empty id": {free + "overrides: {'': {}}\n", `line 3: overrides: id "" is empty`},
	}
	for _, section := range []string{"allow", "deny"} {
		for value, want := range map[string]string{
			"":                   "want a list of users, got nothing",
			"~":                  "want a list of users, got ~",
			"mallory":            "want a list of users, got mallory",
			"{a: b}":             "want a list of users, got a mapping",
			"[8421]":             "want a user's id as a string, got 8421",
			"[a, [b]]":           "want a user's id as a string, got a list",
			"[a, '']":            `id "" is empty`,
			"[a, b, a]":          "a is there already, in " + section,
			`["a\tb"]`:           `id "a\tb" has U+0009, which does not show`,
			`["a\u202e"]`:        `id "a\u202e" has U+202E, which does not show`,
			"[' a']":             `id " a" begins or ends with a space (U+0020)`,
			"[" + longest + "x]": `id "` + longest[:80] + `\u2026" is longer than 256 bytes`,
			"[" + longest + "€]": `id "` + longest[:80] + `\u2026" is longer than 256 bytes`,
		} {
			file := free + section + ": " + value + "\n"
			rows[section+": "+value] = mistake{file, "line 3: " + section + ": " + want}
		}
	}
	assertRefused(t, rows)

	for _, list := range []string{"allow: []", "deny: []", "overrides: {}", "allow: [" + longest + "]"} {
		_, err := tiers.Load(strings.NewReader(free + list + "\n"))
		require.NoError(t, err, list)
	}
	_, err := tiers.Default().WithUsers(tiers.Users{Deny: []string{longest + "x"}})
	require.ErrorContains(t, err, "is longer than 256 bytes")
}

// A time is one of RFC 3339, and of nothing that only looks like it.
func TestUntil(t *testing.T) {
	for written, ok := range map[string]bool{
		"2026-12-31T23:59:59Z":        true,
		"2026-12-31T23:59:59.5Z":      true,
		"'2026-12-31T23:59:59+05:30'": true,
		"2026-12-31T23:59:59-23:59":   true,
		"2020-01-01T00:00:00Z":        true, // over, which is no mistake
		"'2026-12-31T23:59:59,5Z'":    false,
		"'2026-12-31T3:59:59Z'":       false,
		"2026-12-31T23:59:59+24:00":   false,
		"2026-12-31T23:59:59+01:60":   false,
		"2026-12-31T23:59:59":         false,
		"2026-12-31 23:59:59Z":        false,
		"2026-12-31t23:59:59z":        false,
		"2026-02-30T00:00:00Z":        false,
		"2026-12-31T24:00:00Z":        false,
		"2026-12-31":                  false,
		"1798761599":                  false,
		"tomorrow":                    false,
		"''":                          false,
		"":                            false,
	} {
		file := free + "overrides: {a: {per_minute: 1, per_day: 1, until: " + written + "}}\n"
		_, err := tiers.Load(strings.NewReader(file))
		if ok {
			require.NoError(t, err, written)
			continue
		}
		want := "line 3: overrides.a.until: want a time such as 2026-12-31T23:59:59Z, got "
		require.ErrorContains(t, err, want, written)
	}
}

// One moment in two zones is one table: a file that only writes it otherwise has not changed.
func TestUntilInAnotherZone(t *testing.T) {
	of := func(until time.Time) *tiers.Store {
		o := tiers.Override{Limits: tiers.Limits{PerMinute: 1, PerDay: 1}, Until: until}
		s, err := tiers.Default().WithUsers(tiers.Users{Overrides: map[string]tiers.Override{"a": o}})
		require.NoError(t, err)
		return s
	}
	now := time.Now() // with a monotonic clock's reading
	require.True(t, reflect.DeepEqual(of(now), of(now.Round(0).In(time.FixedZone("", 7200)))))
}
