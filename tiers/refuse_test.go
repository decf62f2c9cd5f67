package tiers_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/tiers"
)

// mistake is a file and the error that it gets, without "tiers: ".
type mistake struct{ file, want string }

func assertRefused(t *testing.T, mistakes map[string]mistake) {
	for name, m := range mistakes {
		t.Run(name, func(t *testing.T) {
			s, err := tiers.Load(strings.NewReader(m.file))
			require.EqualError(t, err, "tiers: "+m.want)
			assert.Nil(t, s)
		})
	}
}

func TestLoadRefusesFiles(t *testing.T) {
	const (
		empty   = "empty file"
		control = "yaml: control characters are not allowed"
	)
	assertRefused(t, map[string]mistake{
		"empty":                  {"", empty},
		"blank":                  {" \n\n", empty},
		"only comments":          {"# a\n  # b\n", empty},
		"only a byte order mark": {"\ufeff", empty},
		"only a document marker": {"---\n", empty},
		"null":                   {"null", empty},
		"a list":                 {"- free", "line 1: cannot unmarshal !!seq into tiers.file"},
		"a scalar":               {"free", "line 1: cannot unmarshal !!str `free` into tiers.file"},
		"second document":        {free + "---\n" + free, "line 3: second document; a tier file is one"},
		"second empty document":  {free + "---\n", "line 3: second document; a tier file is one"},
		"second malformed":       {free + "---\n}", "yaml: line 3: did not find expected node content"},
		"1 byte above 256 KiB": {
			free + "#" + strings.Repeat("x", largest-len(free)),
			"file is larger than 256 KiB",
		},
		"not UTF-8":              {free + "  \xff: 1", "yaml: invalid leading UTF-8 octet"},
		"not UTF-8 in a comment": {free + "# \xc3", "yaml: incomplete UTF-8 octet sequence"},
		"control character":      {free + "# \x1b[2J", control},
		"UTF-16 without mark":    {"t\x00i\x00", control},
		"not YAML": {
			free + "  pro: {per_minute: 60\n",
			"yaml: line 2: did not find expected ',' or '}'",
		},
		"indented by a tab": {
			"tiers:\n\tfree: {}\n",
			"yaml: line 2: found character that cannot start any token",
		},
		"line separator": {
			strings.Replace(free, "free", "free\u2028", 1),
			"yaml: line 2: did not find expected key (the file has U+2028, which YAML takes for a line break)",
		},
	})
}

func TestLoadRefusesFields(t *testing.T) {
	const (
		unknown = " not found in type tiers.file"
		mapping = "want a mapping from tiers to limits, got "
		aString = "want a string, got "
	)
	assertRefused(t, map[string]mistake{
		"unknown":       {free + "tier: 1", "line 3: field tier" + unknown},
		"in other case": {"Tiers: {}", "line 1: field Tiers" + unknown},
		"unreadable":    {free + `"a\nb\e\u200b": 1`, `line 3: field a\nb\x1b\u200b` + unknown},
		"empty name":    {free + `"": 1`, "line 3: field " + unknown},
		"long name": {
			free + "? " + strings.Repeat("a", 1e5),
			"line 3: field " + strings.Repeat("a", 286) + "…",
		},
		"a number":        {free + "5: 1", "line 3: field 5" + unknown},
		"two unknown":     {"a: 1\nb: 2", "line 1: field a" + unknown + "; line 2: field b" + unknown},
		"duplicate tiers": {free + free, `line 3: mapping key "tiers" already defined at line 1`},
		"duplicate fallback": {
			"fallback: a\n'fallback': b\n",
			`line 2: mapping key "fallback" already defined at line 1`,
		},
		"no tiers":                  {"fallback: free", "field tiers is missing"},
		"nothing in it":             {"{}", "field tiers is missing"},
		"tiers nothing":             {"tiers:", "field tiers is missing"},
		"tiers null":                {"tiers: null", "field tiers is missing"},
		"tiers a list":              {"tiers:\n  - free", "line 2: " + mapping + "a list"},
		"tiers a string":            {`tiers: "free"`, "line 1: " + mapping + `"free"`},
		"tiers empty":               {"tiers: {}", "the table is empty"},
		"fallback not in the table": {free + "fallback: gold", "fallback: gold is not in the table"},
		"free neither": {
			"tiers: {pro: {per_minute: 5, per_day: 100}}",
			"fallback: free is not in the table",
		},
		"fallback empty":     {free + "fallback: ''", "fallback is empty"},
		"fallback nothing":   {free + "fallback:", "line 3: fallback: " + aString + "nothing"},
		"fallback null":      {free + "fallback: null", "line 3: fallback: " + aString + "null"},
		"fallback a number":  {free + "fallback: 5", "line 3: fallback: " + aString + "5"},
		"fallback a list":    {free + "fallback: [free]", "line 3: fallback: " + aString + "a list"},
		"fallback a mapping": {free + "fallback: {free: 1}", "line 3: fallback: " + aString + "a mapping"},
	})
}

func TestLoadRefusesTiers(t *testing.T) {
	const (
		limits  = ": {per_minute: 5, per_day: 100}"
		unknown = "unknown field; want per_minute, per_hour, per_day, per_month, tokens_per_minute, " +
			"tokens_per_day, tokens_per_month, spend_per_day, spend_per_month or concurrent"
		zero = "0 is less than 1; for no limit write unlimited"
	)
	assertRefused(t, map[string]mistake{
		"empty name":        {free + "  ''" + limits, `tier name "" is empty`},
		"control in name":   {free + `  "a\0"` + limits, `tier name "a\x00" has U+0000, which does not show`},
		"space in name":     {free + `  "a "` + limits, `tier name "a " begins or ends with a space (U+0020)`},
		"two lines in name": {free + "  \"a\n # b\n  c\"" + limits, "yaml: line 3: could not find expected ':'"},
		"name a number":     {free + "  5" + limits, "line 3: want a string as a key, got 5"},
		"name a list":       {free + "  [a]" + limits, "line 3: want a string as a key, got a list"},
		"name null":         {free + "  ~" + limits, "line 3: want a string as a key, got ~"},
		"duplicate":         {free + "  'free'" + limits, "line 3: free: duplicate key; first on line 2"},
		"nothing":           {free + "  pro:", "line 3: pro: want a mapping of limits, got nothing"},
		"number":            {free + "  pro: 5", "line 3: pro: want a mapping of limits, got 5"},
		"list":              {free + "  pro: [5, 100]", "line 3: pro: want a mapping of limits, got a list"},
		"unknown field":     {free + "  pro:\n    per_minuet: 5", "line 4: pro.per_minuet: " + unknown},
		"Go field":          {free + "  pro: {PerMinute: 5}", "line 3: pro.PerMinute: " + unknown},
		"unreadable field":  {free + `  pro: {"a\nb": 5}`, `line 3: pro."a\nb": ` + unknown},
		"duplicate field": {
			free + "  pro: {per_day: 5,\n per_day: 5}",
			"line 4: pro.per_day: duplicate key; first on line 3",
		},
		"no per_minute":    {free + "  pro: {per_day: 5}", "pro.per_minute: 0 is less than 1"},
		"no field":         {free + "  pro: {}", "pro.per_minute: 0 is less than 1; pro.per_day: 0 is less than 1"},
		"no per_day":       {free + "  pro: {per_minute: 5}", "pro.per_day: 0 is less than 1"},
		"day below minute": {strings.ReplaceAll(free, "100", "3"), "free.per_day: 3 is less than per_minute 5"},
		"two broken rules": {
			free + "  b: {per_minute: 2, per_day: 1}\n  a: {per_minute: 5, per_day: 3}",
			"a.per_day: 3 is less than per_minute 5; b.per_day: 1 is less than per_minute 2",
		},
		"a number first": {
			free + "  b: {per_minute: 5, per_day: 3}\n  a: {per_minute: 0}",
			"line 4: a.per_minute: " + zero,
		},
	})
}

// What stands for something else than is written there is refused, so no alias is ever followed.
func TestLoadRefusesIndirection(t *testing.T) {
	assertRefused(t, map[string]mistake{
		"anchor": {withMinute("&five 5"), "line 1: tiers.free.per_minute: anchor &five is not allowed"},
		"anchor on a table": {
			"tiers: &all {free: {per_minute: 5, per_day: 100}}",
			"line 1: tiers: anchor &all is not allowed",
		},
		"anchor on a key":   {"&t tiers: {}", "line 1: anchor &t is not allowed"},
		"anchor on the top": {"--- &top\n" + free, "line 1: anchor &top is not allowed"},
		"alias": {
			"tiers: {free: &a {per_minute: 5, per_day: 100}, pro: *a}",
			"line 1: tiers.free: anchor &a is not allowed",
		},
		"alias to itself": {"tiers: &a {free: *a}", "line 1: tiers: anchor &a is not allowed"},
		"unknown alias":   {withMinute("*five"), "yaml: unknown anchor 'five' referenced"},
		"merge key": {
			"tiers: {free: {<<: {per_minute: 5}, per_day: 100}}",
			"line 1: tiers.free: merge key << is not allowed",
		},
		"merge on the top": {
			"<<: {tiers: {free: {per_minute: 5, per_day: 100}}}",
			"line 1: merge key << is not allowed",
		},
		"tag":               {withMinute("!!int 5"), "line 1: tiers.free.per_minute: tag !!int is not allowed"},
		"tag that converts": {withMinute(`!!int "5"`), "line 1: tiers.free.per_minute: tag !!int is not allowed"},
		"tag of one's own":  {withMinute("!limit 5"), "line 1: tiers.free.per_minute: tag !limit is not allowed"},
		"tag on a key":      {"!!str tiers: {}", "line 1: tag !!str is not allowed"},
		"tag on the top":    {"--- !!map\n" + free, "line 1: tag !!map is not allowed"},
		"alias bomb": {
			"a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b]",
			"line 1: a: anchor &a is not allowed",
		},
	})
}
