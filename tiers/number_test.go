package tiers_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestLoadRefusesNumbers(t *testing.T) {
	const (
		field = "line 1: free.per_minute: "
		want  = field + "want a whole number in decimal digits or unlimited, got "
		least = " is less than 1; for no limit write unlimited"
		most  = " is out of range; want at most 9223372036854775807 or unlimited"
	)
	mistakes := map[string]mistake{
		"zero":             {withMinute("0"), field + "0" + least},
		"minus one":        {withMinute("-1"), field + "-1" + least},
		"negative":         {withMinute("-5"), field + "-5" + least},
		"out of range":     {withMinute("99999999999999999999"), field + "99999999999999999999" + most},
		"far out of range": {withMinute(strings.Repeat("9", 1000)), field + strings.Repeat("9", 80) + "…" + most},
	}
	for written, shown := range map[string]string{
		"1.5": "", "5.0": "", "5e3": "", "0x10": "", "0o10": "", "010": "", "0b10": "", "1:30": "", "1_000": "",
		"+5": "", "-0": "", "٥": "", "5 6": "", ".inf": "", ".nan": "", "five": "", "null": "", "~": "", "true": "",
		"": "nothing", `"5"`: `"5"`, "'5'": `"5"`, `"99999999999999999999"`: `"99999999999999999999"`,
		"[5]": "a list", "{a: 5}": "a mapping",
		"Unlimited": "", "UNLIMITED": "", "infinite": "", "unlimited.": "", `"-1"`: `"-1"`, "[unlimited]": "a list",
	} {
		if shown == "" {
			shown = written
		}
		mistakes[fmt.Sprintf("written as %q", written)] = mistake{withMinute(written), want + shown}
	}
	assertRefused(t, mistakes)
	assertRefused(t, map[string]mistake{"block scalar": {
		"tiers:\n free:\n  per_day: 5\n  per_minute: |-\n   5\n",
		`line 4: free.per_minute: want a whole number in decimal digits or unlimited, got "5"`,
	}})
}

func TestLoadRefusesOptionalNumbers(t *testing.T) {
	mistakes := make(map[string]mistake)
	add := func(field, written, want string) {
		file := fmt.Sprintf("tiers: {free: {per_minute: 5, per_day: 100, %s: %s}}", field, written)
		mistakes[field+" "+written] = mistake{file, "line 1: free." + field + ": " + want}
	}
	for _, field := range []string{
		"per_hour", "per_month", "tokens_per_minute", "tokens_per_day", "tokens_per_month", "concurrent",
	} {
		for _, written := range []string{"0", "-1", "-5"} {
			add(field, written, written+" is less than 1; for no limit write unlimited")
		}
		for _, written := range []string{"1.5", "2.00", "1e3", "null"} {
			add(field, written, "want a whole number in decimal digits or unlimited, got "+written)
		}
		add(field, "9223372036854775808",
			"9223372036854775808 is out of range; want at most 9223372036854775807 or unlimited")
	}
	for _, field := range []string{"spend_per_day", "spend_per_month"} {
		for _, written := range []string{"0", "0.00", "-0", "-1", "-2.50"} {
			add(field, written, written+" is less than 0.000001; for no limit write unlimited")
		}
		for _, written := range []string{"0.0000001", "1e3", "+1", ".5", "5.", "010", "1_000", "null", "$5"} {
			add(field, written, "want an amount with at most 6 decimals (2.50) or unlimited, got "+written)
		}
		add(field, `"2.50"`, `want an amount with at most 6 decimals (2.50) or unlimited, got "2.50"`)
		add(field, "[2.50]", "want an amount with at most 6 decimals (2.50) or unlimited, got a list")
		add(field, "9300000000000", "9300000000000 is out of range; want at most 9007199254.740992 or unlimited")
	}
	assertRefused(t, mistakes)
	assertRefused(t, map[string]mistake{
		"hour below minute": {withFree("per_hour: 4"), "free.per_hour: 4 is less than per_minute 5"},
		"hour above day":    {withFree("per_hour: 101"), "free.per_day: 100 is less than per_hour 101"},
		"month below day":   {withFree("per_month: 99"), "free.per_month: 99 is less than per_day 100"},
		"too many tokens": {
			withFree("tokens_per_day: 9007199254740993"),
			"free.tokens_per_day: 9007199254740993 is more than 9007199254740992",
		},
		"too much money": {
			withFree("spend_per_day: 9007199254.740993"),
			"free.spend_per_day: 9007199254.740993 is more than 9007199254.740992",
		},
		"month's money below": {
			withFree("spend_per_day: 2.50, spend_per_month: 2.4"),
			"free.spend_per_month: 2.40 is less than spend_per_day 2.50",
		},
	})
}
