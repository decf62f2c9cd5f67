package tiers

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Tier names a class of users with the same limits. A name may have letters of any script, digits,
// punctuation, symbols and plain spaces between them. It may not have invisible characters or other spaces:
// see [NewStore]. Names are compared byte by byte. "Pro" is not "pro", and nothing is normalised: é as one
// character (Unicode's form NFC) and é as e with a combining accent (NFD) are two tiers. Write names in one
// form everywhere.
type Tier string

// The tiers of [Default]. A table may name others.
const (
	Free       Tier = "free"
	Pro        Tier = "pro"
	Enterprise Tier = "enterprise"
)

// brokenRule returns what is wrong with a name, or "". If two different names looked the same, users could
// get the fallback unnoticed.
func brokenRule(name string) string {
	switch {
	case name == "":
		return "is empty"
	case !utf8.ValidString(name):
		return "is not UTF-8"
	}
	before := ' '
	for _, r := range name {
		switch {
		case hidden(r):
			return fmt.Sprintf("has %U, which does not show", r)
		case before == ' ' && unicode.IsMark(r):
			return fmt.Sprintf("has the combining mark %U with no letter before it", r)
		}
		before = r
	}
	if strings.Trim(name, " ") != name {
		return "begins or ends with a space (U+0020)"
	}
	return ""
}

// hidden reports an invisible character, or one that looks like a plain space (U+0020) but is not. IsPrint
// already refuses controls, format characters, other spaces, private use and unassigned characters.
func hidden(r rune) bool {
	return !unicode.IsPrint(r) ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) || blank(r)
}

// blank reports letters, marks and symbols that are drawn as nothing, although no Unicode property says so.
func blank(r rune) bool {
	switch r {
	case '\u2800', // braille pattern of no dots
		'\u2d7f',                   // Tifinagh joiner
		'\u303f',                   // ideographic half fill space
		'\ufffc',                   // placeholder for a missing object
		'\U0001107f',               // Brahmi number joiner
		'\U00013441', '\U00013442', // Egyptian blanks
		'\U00016fe4', // Khitan filler
		'\U0001d159': // null notehead
		return true
	}
	return false
}
