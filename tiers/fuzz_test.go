package tiers_test

import (
	"bytes"
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
		"tiers: {a: &a {per_minute: 1_0, per_day: 0x10}, <<: *a, ? [b] : !!int 5}",
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
			assert.Positive(t, limits.PerMinute)
			assert.GreaterOrEqual(t, limits.PerDay, limits.PerMinute)
			table[tier] = limits
		}
		require.Contains(t, table, s.Fallback())
		assert.Equal(t, table[s.Fallback()], s.Lookup("\x00 no file can name this tier"))

		loose := struct {
			Fallback tiers.Tier
			Tiers    map[tiers.Tier]map[string]int
		}{Fallback: tiers.Free}
		require.NoError(t, yaml.Unmarshal(file, &loose))
		assert.Equal(t, loose.Fallback, s.Fallback())
		require.Len(t, loose.Tiers, len(table))
		for tier, limits := range table {
			assert.Equal(t, map[string]int{"per_minute": limits.PerMinute, "per_day": limits.PerDay}, loose.Tiers[tier])
		}
	})
}

// assertReadable checks that err is one short line of text, without the insides of the package.
func assertReadable(t *testing.T, err error) {
	t.Helper()
	text := err.Error()
	assert.True(t, strings.HasPrefix(text, "tiers: "), text)
	assert.True(t, utf8.ValidString(text), "%q", text)
	assert.False(t, strings.ContainsFunc(text, unicode.IsControl), "%q", text)
	assert.Less(t, len(text), 4096)
	for _, inside := range []string{"Limits", "PerMinute", "PerDay", "Field validation"} {
		assert.NotContains(t, text, inside)
	}
}
