package tiers_test

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/gin-tiers/ratelimit/tiers"
)

// FuzzLoad checks that Load answers any bytes with a store that obeys the rules or with an error that an
// operator can read, and that what it accepts is what yaml.v3 reads there by itself.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		free,
		"fallback: pro # x\n# y\n" + free + "  'pro': {per_day: 5000, \"per_minute\": 60}\n...\n",
		"\ufeff{\r\n\t\"tiers\": {\"free\": {\"per_minute\": 5, \"per_day\": 3}}}",
		withFree("per_hour: 5, spend_per_day: 2.5, spend_per_month: 'unlimited', concurrent: 1"),
		"tiers: {a: &a {per_minute: 1_0, per_day: 0x10}, <<: *a, ? [b] : !!int 5}",
		free + "overrides: {a: {per_minute: 1, per_day: 2, until: 2027-01-01T00:00:00Z}}\nallow: [b]\ndeny: [c]",
		"--- >-\n a\n# b\n--- |\n c",
		"fallback: \"a\\\n # b\n  c\"\n" + free,
		"%YAML 1.2\n---\n- \xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		s, err := tiers.Load(bytes.NewReader(file))
		if err != nil {
			assert.Nil(t, s)
			assertReadable(t, err)
			return
		}
		table := make(map[tiers.Tier]tiers.Limits)
		for _, tier := range s.Tiers() {
			limits := s.Lookup(tier)
			assertOrdered(t, limits.PerMinute, limits.PerHour, limits.PerDay, limits.PerMonth)
			assertOrdered(t, limits.TokensPerMinute, limits.TokensPerDay, limits.TokensPerMonth)
			assertOrdered(t, limits.SpendPerDay, limits.SpendPerMonth)
			assertOrdered(t, limits.Concurrent)
			assert.NotZero(t, limits.PerMinute)
			assert.NotZero(t, limits.PerDay)
			table[tier] = limits
		}
		require.Contains(t, table, s.Fallback())
		assert.Equal(t, table[s.Fallback()], s.Lookup("\x00 no file can name this tier"))

		named := make(map[string]bool)
		users := s.Users()
		for id, o := range users.Overrides {
			assertOrdered(t, o.PerMinute, o.PerHour, o.PerDay, o.PerMonth)
			assert.NotZero(t, o.PerMinute)
			assert.False(t, o.Until.IsZero())
			named[id] = true
		}
		for _, id := range slices.Concat(users.Allow, users.Deny) {
			assert.False(t, named[id], "%q is there twice", id)
			assert.NotEmpty(t, id)
			assert.LessOrEqual(t, len(id), 256)
			named[id] = true
		}

		loose := struct {
			Fallback tiers.Tier
			Tiers    map[tiers.Tier]map[string]string
		}{Fallback: tiers.Free}
		require.NoError(t, yaml.Unmarshal(file, &loose))
		assert.Equal(t, loose.Fallback, s.Fallback())
		require.Len(t, loose.Tiers, len(table))
		for tier, limits := range table {
			for field, value := range loose.Tiers[tier] {
				var amount tiers.Money
				if strings.HasPrefix(field, "spend") && amount.UnmarshalText([]byte(value)) == nil {
					loose.Tiers[tier][field] = amount.String() // 2.5 is 2.50
				}
			}
			assert.Equal(t, written(limits), loose.Tiers[tier])
		}
	})
}

// assertOrdered checks the limits of one unit, shortest window first: all are positive, unlimited or not
// there, and none is below one before it.
func assertOrdered[T int | tiers.Money](t *testing.T, limits ...T) {
	t.Helper()
	limits = slices.DeleteFunc(limits, func(limit T) bool { return limit == 0 || limit == tiers.Unlimited })
	assert.True(t, slices.IsSorted(limits), "%v", limits)
	for _, limit := range limits {
		assert.Positive(t, limit)
	}
}

// written is how a tier file spells limits.
func written(limits tiers.Limits) map[string]string {
	fields := make(map[string]string)
	for field, value := range reflect.ValueOf(limits).Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		switch value.Int() {
		case 0:
		case tiers.Unlimited:
			fields[name] = "unlimited"
		default:
			fields[name] = fmt.Sprint(value)
		}
	}
	return fields
}

// assertReadable checks that err is one short line of text, without the insides of the package.
func assertReadable(t *testing.T, err error) {
	t.Helper()
	text := err.Error()
	assert.True(t, strings.HasPrefix(text, "tiers: "), text)
	assert.True(t, utf8.ValidString(text), "%q", text)
	assert.False(t, strings.ContainsFunc(text, unicode.IsControl), "%q", text)
	assert.Less(t, len(text), 4096)
	for _, inside := range []string{"Limits", "PerMinute", "PerDay", "Spend", "Field validation"} {
		assert.NotContains(t, text, inside)
	}
}
