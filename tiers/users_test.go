package tiers_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/tiers"
)

var newYear = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)

const withUsers = free + `
overrides:
  alice: {per_minute: 50, per_day: 1000, tokens_per_day: 9, until: 2027-01-01T01:00:00+01:00}
  "8421": {per_minute: unlimited, per_day: unlimited, until: "2027-01-01T00:00:00Z"}
allow: [monitoring]
deny: [mallory, ip/203.0.113.9]
`

func TestUsersOfAFile(t *testing.T) {
	s, err := tiers.Load(strings.NewReader(withUsers))
	require.NoError(t, err)
	ofFree := s.Lookup("free")
	before := newYear.Add(-time.Second)

	alice := tiers.Limits{PerMinute: 50, PerDay: 1000, TokensPerDay: 9}
	assert.Equal(t, alice, s.LookupUser("alice", "free", before))
	assert.Equal(t, alice, s.LookupUser("alice", "unknown", before), "whatever the tier")
	assert.Equal(t, ofFree, s.LookupUser("alice", "free", newYear), "the moment itself is after it")
	assert.Equal(t, ofFree, s.LookupUser("Alice", "free", before))
	unlimited := tiers.Limits{PerMinute: tiers.Unlimited, PerDay: tiers.Unlimited}
	assert.Equal(t, unlimited, s.LookupUser("8421", "free", before))
	assert.Equal(t, unlimited, s.LookupUser("monitoring", "free", newYear))
	assert.Equal(t, ofFree, s.LookupUser("mallory", "free", before), "who is denied is asked for elsewhere")

	for user, want := range map[string][2]bool{
		"alice": {true, false}, "monitoring": {true, false}, "bob": {false, false}, "": {false, false},
		"mallory": {false, true}, "ip/203.0.113.9": {false, true},
	} {
		assert.Equal(t, want, [2]bool{s.Excepts(user), s.Denies(user)}, user)
	}
}

func TestUsersOfATable(t *testing.T) {
	s := tiers.Default()
	override := tiers.Override{Limits: tiers.Limits{PerMinute: 7, PerDay: 7}, Until: newYear}
	users := tiers.Users{
		Overrides: map[string]tiers.Override{"alice": override},
		Allow:     []string{"z", "b"}, Deny: []string{"y", "c"},
	}
	with, err := s.WithUsers(users)
	require.NoError(t, err)
	require.False(t, s.Excepts("alice"), "the table before stays as it is")
	users.Allow[0], users.Deny[0] = "changed", "changed"
	delete(users.Overrides, "alice")
	got := with.Users()
	require.Equal(t, tiers.Users{
		Overrides: map[string]tiers.Override{"alice": override},
		Allow:     []string{"b", "z"}, Deny: []string{"c", "y"},
	}, got)
	got.Deny[0] = "changed"
	require.True(t, with.Denies("c"))

	without, err := with.WithUsers(tiers.Users{})
	require.NoError(t, err)
	require.False(t, without.Excepts("alice") || without.Denies("c"))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_ = with.LookupUser("alice", "free", newYear)
		_ = with.LookupUser("z", "free", newYear)
		_ = with.Denies("y")
	}))
}

func TestUsersThatAreRefused(t *testing.T) {
	for name, tc := range map[string]struct{ lines, want string }{
		"no mapping": {"overrides: [alice]",
			"line 3: overrides: want a mapping from users to limits, got a list"},
		"a number as id": {"overrides: {8421: {}}", "line 3: overrides: want a string as a key, got 8421"},
		"an unknown field": {"overrides: {a: {per_minute: 5, per_week: 5}}",
			"line 3: overrides.a.per_week: unknown field; want per_minute, per_hour, per_day, per_month, " +
				"tokens_per_minute, tokens_per_day, tokens_per_month, spend_per_day, spend_per_month, " +
				"concurrent or until"},
		"no number": {"overrides: {a: {per_minute: five}}", "line 3: overrides.a.per_minute: " +
			"want a whole number in decimal digits or unlimited, got five"},
		"no end": {"overrides: {a: {per_minute: 5, per_day: 6}}", "overrides.a.until is missing"},
		"no zone": {"overrides: {a: {until: 2026-12-31T23:59:59}}", "line 3: overrides.a.until: " +
			"want a time such as 2026-12-31T23:59:59Z, got 2026-12-31T23:59:59"},
		"a day":   {"overrides: {a: {until: 2026-12-31}}", "want a time such as"},
		"a list":  {"overrides: {a: {until: [2026-12-31T23:59:59Z]}}", "got a list"},
		"a twice": {"overrides: {a: {}, a: {}}", "line 3: overrides.a: duplicate key; first on line 3"},
		"rules between numbers": {"overrides: {a: {per_minute: 6, per_day: 5, until: 2027-01-01T00:00:00Z}}",
			"overrides.a.per_day: 5 is less than per_minute 6"},
		"a number missing": {"overrides: {a: {per_minute: 6, until: 2027-01-01T00:00:00Z}}",
			"overrides.a.per_day: 0 is less than 1"},
		"no list":        {"deny: mallory", "line 3: deny: want a list of users, got mallory"},
		"no string":      {"deny: [8421]", "line 3: deny: want a user's id as a string, got 8421"},
		"an empty id":    {"allow: ['']", `allow: id "" is empty`},
		"a hidden space": {"allow: [\"a\u200b\"]", `allow: id "a\u200b" has U+200B, which does not show`},
		"one address of a /64": {"deny: [ip/2001:db8::1]",
			`line 3: deny: id "ip/2001:db8::1" matches no caller: write an address as "ip/203.0.113.7" or ` +
				`"ip/2001:db8::/64"`},
		"an address with zeros":  {"deny: [ip/001.2.3.4]", `id "ip/001.2.3.4" matches no caller`},
		"a 6to4 network":         {"deny: ['ip/2002:cb00:7100::/64']", "matches no caller"},
		"a network":              {"allow: [ip/203.0.113.0/24]", "matches no caller"},
		"an IPv6 with host bits": {"overrides: {'ip/2001:db8::1/64': {}}", "matches no caller"},
		"twice on a list":        {"deny: [a, b, a]", "deny: a is there already, in deny"},
		"on two lists":           {"allow: [a]\ndeny: [a]", "deny: a is there already, in allow"},
		"with an override": {"overrides: {a: {per_minute: 1, per_day: 1}}\nallow: [a]",
			"allow: a is there already, in overrides"},
		"an unknown list":   {"block: [a]", "field block not found"},
		"an alias":          {"allow: &a [x]\ndeny: *a", "anchor &a is not allowed"},
		"a mapping in deny": {"deny: [{a: b}]", "line 3: deny: want a user's id as a string, got a mapping"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tiers.Load(strings.NewReader(free + tc.lines + "\n"))
			require.ErrorContains(t, err, tc.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

// An override replaces the request windows as a whole, and other budgets only if it has such ones.
func TestOverridesKeepOtherBudgets(t *testing.T) {
	table, err := tiers.Load(strings.NewReader(`
tiers:
  free: {per_minute: 5, per_hour: 50, per_day: 100, tokens_per_minute: 100, tokens_per_day: 1000,
         spend_per_day: 2.50, concurrent: 2}
overrides:
  requests: {per_minute: 7, per_day: 70, until: 2027-01-01T00:00:00Z}
  tokens:   {per_minute: 7, per_day: 70, tokens_per_month: 9000, until: 2027-01-01T00:00:00Z}
  money:    {per_minute: 7, per_day: 70, spend_per_month: unlimited, concurrent: 9,
             until: 2027-01-01T00:00:00Z}
`))
	require.NoError(t, err)
	of := func(user string) tiers.Limits { return table.LookupUser(user, "free", newYear.Add(-time.Hour)) }
	require.Equal(t, tiers.Limits{PerMinute: 7, PerDay: 70, TokensPerMinute: 100, TokensPerDay: 1000,
		SpendPerDay: 2_500_000, Concurrent: 2}, of("requests"))
	require.Equal(t, tiers.Limits{PerMinute: 7, PerDay: 70, TokensPerMonth: 9000, SpendPerDay: 2_500_000,
		Concurrent: 2}, of("tokens"))
	require.Equal(t, tiers.Limits{PerMinute: 7, PerDay: 70, TokensPerMinute: 100, TokensPerDay: 1000,
		SpendPerMonth: tiers.Unlimited, Concurrent: 9}, of("money"))
}
