package tiers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/tiers"
)

// What these files exploit takes yaml.v3 a hundred times as long as an honest file of the same size, or all memory. The
// honest file is the yardstick, so that a slow machine and the race detector (a tenfold) do not matter.
func TestHostileFilesFailFast(t *testing.T) {
	start := time.Now()
	_, err := tiers.Load(strings.NewReader(manyTiers(1 << 20)))
	require.NoError(t, err)
	limit := max(time.Second, 20*time.Since(start))

	const size = 1 << 20
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	lines := func(line func(i int) string) string {
		var b strings.Builder
		for i := 0; b.Len() < size*9/10; i++ {
			b.WriteString(line(i) + "\n")
		}
		return b.String()
	}
	// split has comments that yaml.v3 keeps apart, and searches at each level of nesting that ends after them.
	split := strings.Repeat("#\n #\n", size*9/10/5)

	for name, file := range map[string]string{
		"100 MB":                       strings.Repeat("tiers:\n", 100<<20/7),
		"open lists":                   fill("["),
		"open mappings":                fill("{"),
		"open lists under a key":       "tiers: " + strings.Repeat("[", size-100),
		"nested lists":                 strings.Repeat("[", 9999) + strings.Repeat("]", 9999),
		"nested mappings":              strings.Repeat("{a: ", 9999) + strings.Repeat("}", 9999),
		"lists as keys of lists":       "[" + strings.Repeat(strings.Repeat("[", 340)+strings.Repeat("]:", 340)+",", 1000) + "]",
		"mappings as keys of mappings": strings.Repeat(strings.Repeat("{", 340)+strings.Repeat("}:", 340)+"\n", 1000),
		"stairs, then comments":        lines(func(i int) string { return strings.Repeat(" ", min(i, 1000)) + "a:" })[:size/2] + "\n" + split[:size/2-1],
		"compact mappings":             fill("a: "),
		"compact lists":                fill("- "),
		"compact keys":                 fill("? "),
		"lists, then comments":         strings.Repeat("- ", 9998) + "a\n" + split,
		"comments, then comments":      "a: #\n" + fill(" #\n#\n")[:size-10],
		"one line":                     fill("a"),
		"one key":                      strings.Repeat("a", size-4) + ": 1",
		"blank lines":                  fill("\n"),
		"many keys":                    lines(func(i int) string { return fmt.Sprintf("k%d: 1", i) }),
		"many documents":               fill("---\n"),
		"one number":                   "tiers: {free: {per_day: 1, per_minute: " + strings.Repeat("9", size-50) + "}}",
		"many bad tiers": "tiers:\n" + lines(func(i int) string {
			return fmt.Sprintf("  t%d: {per_minute: 0, per_day: 0}", i)
		}),
		"alias bomb": "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + func() (s string) {
			for c := 'b'; c <= 'z'; c++ {
				s += fmt.Sprintf("%c: &%[1]c [%[2]s]\n", c, strings.Repeat(fmt.Sprintf("*%c,", c-1), 10))
			}
			return s
		}(),
		"many aliases":           "a: &a [" + strings.Repeat("*a,", size/3-10) + "]",
		"unknown long alias":     "a: *" + strings.Repeat("a", size-10),
		"many tag directives":    lines(func(i int) string { return fmt.Sprintf("%%TAG !%d! a", i) }),
		"one long tag directive": "%TAG !a! " + strings.Repeat("a", size/2) + "\n---\n" + strings.Repeat("- !a!a a\n", size/20),
		"NEL for line ends":      strings.Repeat("- ", 9998) + "a\u0085" + strings.ReplaceAll(split, "\n", "\u0085")[:size/2],
		"CR for line ends":       strings.Repeat("- ", 9998) + "a\r" + strings.ReplaceAll(split, "\n", "\r"),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := tiers.Load(strings.NewReader(file))
			took := time.Since(start)
			t.Logf("%7.1f ms: %v", float64(took.Microseconds())/1000, err)
			require.Error(t, err)
			assert.Less(t, took, limit)
			assertReadable(t, err)
		})
	}
}

// A table of many tiers is unusual, not hostile; nor is one written as tightly as can be.
func TestManyTiers(t *testing.T) {
	s, err := tiers.Load(strings.NewReader(manyTiers(1 << 20)))
	require.NoError(t, err)
	assert.Greater(t, len(s.Tiers()), 20_000)
	assert.Equal(t, 20_001, s.Lookup("t20000").PerDay)

	for _, tier := range []string{"%c: {per_day: 1,per_minute: 1},", `"%c":{"per_day":1,"per_minute":1},`} {
		tight := `{"fallback":"丁","tiers":{`
		for c := rune('一'); c < '一'+1000; c++ {
			tight += fmt.Sprintf(tier, c)
		}
		s, err := tiers.Load(strings.NewReader(tight + "}}"))
		require.NoError(t, err)
		assert.Len(t, s.Tiers(), 1000)
	}
}

// manyTiers returns an honest tier file as large as fits in size.
func manyTiers(size int) string {
	var b strings.Builder
	b.WriteString("fallback: t0\ntiers:\n")
	for i := 0; b.Len() < size-50; i++ {
		fmt.Fprintf(&b, "  t%d: {per_minute: %d, per_day: %[2]d}\n", i, i+1)
	}
	return b.String()
}
