package tiers_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/tiers"
)

func TestMoneyAsText(t *testing.T) {
	for text, amount := range map[string]tiers.Money{
		"0.00":                  0,
		"0.000001":              1,
		"0.00001":               10,
		"0.01":                  10_000,
		"0.10":                  100_000,
		"0.125":                 125_000,
		"1.00":                  1_000_000,
		"2.50":                  2_500_000,
		"2.500001":              2_500_001,
		"2.05003":               2_050_030,
		"1234567.00":            1_234_567_000_000,
		"-0.000001":             -1,
		"-0.50":                 -500_000,
		"-2.50":                 -2_500_000,
		"9223372036854.775807":  math.MaxInt64,
		"-9223372036854.775808": math.MinInt64,
	} {
		assert.Equal(t, text, amount.String())
		written, err := json.Marshal(map[string]tiers.Money{"a": amount})
		require.NoError(t, err)
		assert.Equal(t, `{"a":`+text+`}`, string(written), "a JSON number")

		back := map[string]tiers.Money{}
		require.NoError(t, json.Unmarshal(written, &back))
		assert.Equal(t, amount, back["a"])
		plain, err := amount.MarshalText()
		require.NoError(t, err)
		assert.Equal(t, text, string(plain))
	}
}

func TestMoneyReadsShorterSpellings(t *testing.T) {
	for text, want := range map[string]tiers.Money{
		"0": 0, "-0": 0, "3": 3_000_000, "2.5": 2_500_000, "2.500000": 2_500_000, "10": 10_000_000,
		"9223372036854": 9_223_372_036_854_000_000,
	} {
		got := tiers.Money(7)
		require.NoError(t, got.UnmarshalText([]byte(text)), text)
		assert.Equal(t, want, got, text)
	}
	kept := tiers.Money(7)
	require.NoError(t, json.Unmarshal([]byte("null"), &kept))
	assert.Equal(t, tiers.Money(7), kept)
}

func TestMoneyRefuses(t *testing.T) {
	const want = "tiers: want an amount with at most 6 decimals (2.50), got "
	for text, message := range map[string]string{
		"":                       want + `""`,
		".":                      want + ".",
		".5":                     want + ".5",
		"5.":                     want + "5.",
		"-":                      want + "-",
		"--1":                    want + "--1",
		"+1":                     want + "+1",
		"1.-5":                   want + "1.-5",
		"1.2.3":                  want + "1.2.3",
		"1e3":                    want + "1e3",
		"1E-3":                   want + "1E-3",
		"0x10":                   want + "0x10",
		"010":                    want + "010",
		"00.50":                  want + "00.50",
		"1_000":                  want + "1_000",
		"1,000.00":               want + "1,000.00",
		"2,50":                   want + "2,50",
		" 1":                     want + `" 1"`,
		"1 ":                     want + `"1 "`,
		"٥":                      want + "٥",
		"NaN":                    want + "NaN",
		"Inf":                    want + "Inf",
		"$2.50":                  want + "$2.50",
		"unlimited":              want + "unlimited",
		"1\n":                    want + `"1\n"`,
		"0.0000001":              want + "0.0000001",
		"2.5000000":              want + "2.5000000",
		strings.Repeat("x", 1e4): want + strings.Repeat("x", 80) + "…",
		"9223372036854.775808":   "tiers: amount 9223372036854.775808 is out of range",
		"-9223372036854.775809":  "tiers: amount -9223372036854.775809 is out of range",
		"9300000000000":          "tiers: amount 9300000000000 is out of range",
	} {
		kept := tiers.Money(7)
		require.EqualError(t, kept.UnmarshalText([]byte(text)), message)
		assert.Equal(t, tiers.Money(7), kept, "an error changes nothing")
	}
	assert.Error(t, json.Unmarshal([]byte(`"2.50"`), new(tiers.Money)), "a JSON string is no number")
	assert.Error(t, json.Unmarshal([]byte(`1e3`), new(tiers.Money)))
}

// FuzzMoney checks that what is accepted is an amount's spelling but for zeros at the end.
func FuzzMoney(f *testing.F) {
	for _, seed := range []string{"2.50", "-0.000001", "0.1234567", "9223372036854.775807", "1e3", "010", ".5"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var amount tiers.Money
		if err := amount.UnmarshalText([]byte(text)); err != nil {
			assertReadable(t, err)
			return
		}
		assert.Regexp(t, `^-?(0|[1-9][0-9]*)(\.[0-9]{1,6})?$`, text)
		trimmed := text
		if strings.Contains(text, ".") {
			trimmed = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
		}
		canonical := strings.TrimSuffix(strings.TrimRight(amount.String(), "0"), ".")
		if amount == 0 {
			trimmed = strings.TrimPrefix(trimmed, "-")
		}
		assert.Equal(t, canonical, trimmed)

		var again tiers.Money
		require.NoError(t, again.UnmarshalText([]byte(amount.String())))
		assert.Equal(t, amount, again)
	})
}
