package tiers_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/tiers"
)

// hidden holds one character or more of each kind that does not show or looks like a plain space.
var hidden = map[string]string{
	"zero width":          "\u200b\u200c\u200d\u2060\ufeff\u180e\u00ad",
	"bidirectional":       "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
	"invisible operators": "\u2061\u2062\u2063\u2064",
	"other format":        "\u206a\u206f\ufff9\ufffa\ufffb\U0001bca0\U0001d173\U00013430",
	"spaces": "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a" +
		"\u202f\u205f\u3000",
	"line breaks":          "\n\r\v\f\u0085\u2028\u2029",
	"controls":             "\x00\t\x1b\x7f\u009f",
	"variation selectors":  "\ufe00\ufe0e\ufe0f\u180b\u180d\u180f\U000e0100\U000e01ef",
	"fillers":              "\u115f\u1160\u3164\uffa0\u17b4\u17b5\u034f\U00016fe4",
	"tags":                 "\U000e0001\U000e0020\U000e007f",
	"drawn as nothing":     "\u2800\u303f\ufffc\U0001d159\U00013441\U00013442",
	"joiners":              "\u2d7f\U0001107f",
	"private use":          "\ue000\uf8ff\U000f0000\U0010fffd",
	"unassigned":           "\u0378\u2065\ufff0\U000e0080\U000e0fff",
	"not a character ever": "\ufdd0\ufffe\uffff\U0010ffff",
}

// R13: a character that does not show, at any place of a tier's name, is an error that names tier and code
// point.
func TestNamesWithHiddenCharacters(t *testing.T) {
	for kind, characters := range hidden {
		t.Run(kind, func(t *testing.T) {
			for _, r := range characters {
				for _, name := range []string{"pro" + string(r), string(r) + "pro", "p" + string(r) + "ro", string(r)} {
					ascii := fmt.Sprintf("%+q", name) // in Go's quotes, all but ASCII escaped
					problem := fmt.Sprintf("%s has %U, which does not show", ascii, r)

					table := good()
					table[tiers.Tier(name)] = table["pro"]
					_, err := tiers.NewStore("free", table)
					require.EqualError(t, err, "tiers: tier name "+problem)

					_, err = tiers.NewStore(tiers.Tier(name), good())
					require.EqualError(t, err, "tiers: fallback "+problem)

					escaped := fmt.Sprintf(`"p\U%08X"`, r)
					_, err = tiers.Load(strings.NewReader(free + "  " + escaped + ": {per_minute: 5, per_day: 100}\n"))
					require.ErrorContains(t, err, fmt.Sprintf("tier name %+q has %U", "p"+string(r), r))
					_, err = tiers.Load(strings.NewReader(free + "fallback: " + escaped + "\n"))
					require.ErrorContains(t, err, fmt.Sprintf("fallback %+q has %U", "p"+string(r), r))
				}
			}
		})
	}
}

// R13: a letter, mark, number, punctuation mark, symbol or plain space is part of a name, unless it is drawn
// as nothing. All else is not.
func TestNamesOfEveryCharacter(t *testing.T) {
	shown := []*unicode.RangeTable{unicode.L, unicode.M, unicode.N, unicode.P, unicode.S}
	nothing := []*unicode.RangeTable{unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector}
	blank := "\u2800\u2d7f\u303f\ufffc\U0001107f\U00013441\U00013442\U00016fe4\U0001d159"
	for r := range rune(unicode.MaxRune + 1) {
		if r >= 0xd800 && r < 0xe000 {
			continue // half of a pair, no character
		}
		if plane := r >> 16; plane > 3 && plane != 14 && r%97 != 0 {
			continue // nothing is assigned in these planes but private use: some of it is enough
		}
		name := tiers.Tier("a" + string(r) + "b")
		_, err := tiers.NewStore(name, map[tiers.Tier]tiers.Limits{name: {PerMinute: 1, PerDay: 1}})
		if r == ' ' || unicode.In(r, shown...) && !unicode.In(r, nothing...) && !strings.ContainsRune(blank, r) {
			require.NoError(t, err, "%U", r)
		} else if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%U", r)) {
			require.Fail(t, "not refused by its code point", "%U: %v", r, err)
		}
	}
}

// R13: a name of combining marks alone, or a mark after a space, has nothing to combine with.
func TestNamesWithLoneMarks(t *testing.T) {
	for _, name := range []string{"\u0301", "\u0301pro", "pro \u0301", "\u20dd", "\u093f"} {
		mark := []rune(strings.Trim(strings.TrimPrefix(name, "pro "), "pro"))[0]
		table := good()
		table[tiers.Tier(name)] = table["pro"]
		_, err := tiers.NewStore("free", table)
		require.EqualError(t, err,
			fmt.Sprintf("tiers: tier name %+q has the combining mark %U with no letter before it", name, mark))
	}
}

// R13: ordinary names stay what they were.
func TestOrdinaryNames(t *testing.T) {
	for _, name := range []tiers.Tier{
		"pro", "Pro 2.0 (EU)", "täglich 100 %", "eu.free", "team/α-β_γ", "бизнес", "企業", "무료", "プロ・プラン", "مجاني",
		"नि:शुल्क हिन्दी", "ไทยฟรี", "ខ្មែរ", "e\u0301t\u00e9", "a  b", "#1", "€5", "★", "🚀", `"`, "10", "~",
	} {
		s, err := tiers.NewStore(name, map[tiers.Tier]tiers.Limits{name: {PerMinute: 5, PerDay: 100}})
		require.NoError(t, err)
		assert.Equal(t, 5, s.Lookup(name).PerMinute)
	}
}

// Names are compared byte by byte: the two spellings of é, which look the same, are two tiers.
func TestNamesAreNotNormalised(t *testing.T) {
	s, err := tiers.NewStore("\u00e9", map[tiers.Tier]tiers.Limits{
		"\u00e9":  {PerMinute: 1, PerDay: 1},
		"e\u0301": {PerMinute: 2, PerDay: 2},
	})
	require.NoError(t, err)
	assert.Equal(t, 1, s.Lookup("\u00e9").PerMinute)
	assert.Equal(t, 2, s.Lookup("e\u0301").PerMinute)
}
