package tiers_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/tiers"
)

// free is the smallest tier file. A row that adds a line to it adds line 3.
const free = "tiers:\n  free: {per_minute: 5, per_day: 100}\n"

// withMinute is the tier file whose per_minute is written so, on line 1.
func withMinute(value string) string {
	return "tiers: {free: {per_minute: " + value + ", per_day: 100}}"
}

func TestLoad(t *testing.T) {
	both := free + "  pro: {per_minute: 60, per_day: 5000}\n"
	for name, tc := range map[string]struct {
		file     string
		fallback tiers.Tier
		tiers    []tiers.Tier
	}{
		"fallback omitted":       {free, "free", []tiers.Tier{"free"}},
		"fallback given":         {"fallback: pro\n" + both, "pro", []tiers.Tier{"free", "pro"}},
		"fallback last":          {both + "fallback: pro\n", "pro", []tiers.Tier{"free", "pro"}},
		"block style":            {"tiers:\n  free:\n    per_day: 100\n    per_minute: 5\n", "free", []tiers.Tier{"free"}},
		"comments":               {"# a\n---\n # b\n" + free + "\n    # c\n  pro: {per_minute: 60, per_day: 5000} # d\n# e", "free", []tiers.Tier{"free", "pro"}},
		"quoted names":           {"'tiers': {\"free\": {per_minute: 5, per_day: 100}, \"10\": {per_minute: 5, per_day: 100}}", "free", []tiers.Tier{"10", "free"}},
		"number sign in a name":  {"tiers: {'# free': {per_minute: 5, per_day: 100}}\nfallback: '# free'", "# free", []tiers.Tier{"# free"}},
		"no newline at the end":  {strings.TrimSpace(free), "free", []tiers.Tier{"free"}},
		"document markers":       {"---\n" + free + "...\n", "free", []tiers.Tier{"free"}},
		"byte order mark":        {"\ufeff" + free, "free", []tiers.Tier{"free"}},
		"CRLF":                   {strings.ReplaceAll("# c\n"+both, "\n", "\r\n"), "free", []tiers.Tier{"free", "pro"}},
		"byte order mark + CRLF": {"\ufeff" + strings.ReplaceAll("---\n"+both, "\n", "\r\n"), "free", []tiers.Tier{"free", "pro"}},
		"JSON":                   {`{"fallback": "free", "tiers": {"free": {"per_minute": 5, "per_day": 100}}}`, "free", []tiers.Tier{"free"}},
		"JSON without blanks":    {`{"tiers":{"free":{"per_minute":5,"per_day":100}}}`, "free", []tiers.Tier{"free"}},
		"JSON with tabs":         {"{\n\t\"tiers\": {\n\t\t\"free\": {\n\t\t\t\"per_minute\": 5,\n\t\t\t\"per_day\": 100\n\t\t}\n\t}\n}\n", "free", []tiers.Tier{"free"}},
		"exactly 1 MiB":          {free + "#" + strings.Repeat("x", 1<<20-len(free)-1), "free", []tiers.Tier{"free"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := tiers.Load(strings.NewReader(tc.file))
			require.NoError(t, err)
			assert.Equal(t, tc.fallback, s.Fallback())
			assert.Equal(t, tc.tiers, s.Tiers())
			assert.Equal(t, tiers.Limits{PerMinute: 5, PerDay: 100}, s.Lookup(tc.tiers[0]))
		})
	}
}

func TestLoadRefuses(t *testing.T) {
	const (
		notDecimal = "tiers: line 1: free.per_minute: want a whole number in decimal digits, got "
		empty      = "tiers: empty file"
	)
	for name, tc := range map[string]struct{ file, want string }{
		// The file as a whole.
		"empty":                    {"", empty},
		"blank":                    {" \n\n", empty},
		"only comments":            {"# a\n  # b\n", empty},
		"only a byte order mark":   {"\ufeff", empty},
		"only a document marker":   {"---\n", empty},
		"null":                     {"null", "tiers: line 1: want fields fallback and tiers, got null"},
		"a list":                   {"- free", "tiers: line 1: want fields fallback and tiers, got a list"},
		"a scalar":                 {"free", "tiers: line 1: want fields fallback and tiers, got free"},
		"second document":          {free + "---\n" + free, "tiers: line 3: second document; a tier file is one"},
		"second empty document":    {free + "---\n", "tiers: line 3: second document; a tier file is one"},
		"second malformed":         {free + "---\n}", "tiers: line 4: did not find expected node content"},
		"1 byte above 1 MiB":       {free + "#" + strings.Repeat("x", 1<<20-len(free)), "tiers: file is larger than 1 MiB"},
		"not UTF-8":                {free + "  \xff: 1", "tiers: line 3: not UTF-8"},
		"not UTF-8 in a comment":   {free + "# \xc3", "tiers: line 3: not UTF-8"},
		"UTF-16":                   {"\xff\xfet\x00", "tiers: line 1: not UTF-8"},
		"UTF-16 without mark":      {"t\x00i\x00", "tiers: line 1: character U+0000 is not allowed"},
		"control character":        {free + "# \x1b[2J", "tiers: line 3: character U+001B is not allowed"},
		"CR line ends":             {strings.ReplaceAll(free, "\n", "\r"), "tiers: line 1: character U+000D is not allowed"},
		"line separator":           {free + "# a\u2028b", "tiers: line 3: character U+2028 is not allowed"},
		"paragraph separator":      {free + "# a\u2029b", "tiers: line 3: character U+2029 is not allowed"},
		"next line":                {free + "# a\u0085b", "tiers: line 3: character U+0085 is not allowed"},
		"byte order mark inside":   {free + "\ufeff", "tiers: line 3: character U+FEFF is not allowed"},
		"not YAML, first line":     {"a: }", "tiers: line 1: did not find expected node content"},
		"not YAML, later line":     {free + "  pro: {per_minute: 60\n", "tiers: line 3: did not find expected ',' or '}'"},
		"not YAML, by the scanner": {free + "  pro: \"\n", "tiers: line 3: found unexpected end of stream"},
		"crowded brackets":         {free + "  pro: " + strings.Repeat("{", 9), "tiers: line 3: too many brackets"},
		"indented by a tab":        {"tiers:\n\tfree: {}\n", "tiers: line 2: found character that cannot start any token"},

		// The top level.
		"unknown top-level field":   {free + "tier: 1", "tiers: line 3: tier: unknown field; want fallback or tiers"},
		"top-level field, case":     {"Tiers: {}", "tiers: line 1: Tiers: unknown field; want fallback or tiers"},
		"unreadable unknown field":  {free + `"a\nb\e": 1`, `tiers: line 3: "a\nb\x1b": unknown field; want fallback or tiers`},
		"empty field":               {free + `"": 1`, `tiers: line 3: "": unknown field; want fallback or tiers`},
		"long unknown field":        {free + "? " + strings.Repeat("a", 1e5), "tiers: line 3: " + strings.Repeat("a", 80) + "…: unknown field; want fallback or tiers"},
		"field that is no string":   {free + "5: 1", "tiers: line 3: want a string as a key, got 5"},
		"field that is a list":      {free + "? [a]\n: 1", "tiers: line 3: want a string as a key, got a list"},
		"duplicate tiers":           {free + free, "tiers: line 3: tiers: duplicate key; first on line 1"},
		"duplicate fallback":        {"fallback: a\n\"fallback\": b\n" + free, "tiers: line 2: fallback: duplicate key; first on line 1"},
		"no tiers":                  {"fallback: free", "tiers: line 1: tiers: missing field"},
		"nothing in it":             {"{}", "tiers: line 1: tiers: missing field"},
		"tiers nothing":             {"tiers:", "tiers: line 1: tiers: want a mapping from tiers to limits, got nothing"},
		"tiers null":                {"tiers: null", "tiers: line 1: tiers: want a mapping from tiers to limits, got null"},
		"tiers a list":              {"tiers:\n  - free", "tiers: line 2: tiers: want a mapping from tiers to limits, got a list"},
		"tiers a string":            {`tiers: "free"`, `tiers: line 1: tiers: want a mapping from tiers to limits, got "free"`},
		"tiers empty":               {"tiers: {}", "tiers: the table is empty"},
		"fallback not in the table": {free + "fallback: gold", "tiers: fallback: gold is not in the table"},
		"free neither":              {"tiers: {pro: {per_minute: 5, per_day: 100}}", "tiers: fallback: free is not in the table"},
		"fallback empty":            {free + "fallback: ''", "tiers: fallback is empty"},
		"fallback nothing":          {free + "fallback:", "tiers: line 3: fallback: want a string, got nothing"},
		"fallback null":             {free + "fallback: null", "tiers: line 3: fallback: want a string, got null"},
		"fallback a number":         {free + "fallback: 5", "tiers: line 3: fallback: want a string, got 5"},
		"fallback a list":           {free + "fallback: [free]", "tiers: line 3: fallback: want a string, got a list"},
		"fallback a mapping":        {free + "fallback: {free: 1}", "tiers: line 3: fallback: want a string, got a mapping"},

		// A tier.
		"empty tier name":        {free + "  '': {per_minute: 5, per_day: 100}", `tiers: tier name "" is empty`},
		"control in tier name":   {free + `  "a\0": {per_minute: 5, per_day: 100}`, `tiers: tier name "a\x00" has U+0000, which does not show`},
		"blank in tier name":     {free + `  "a ": {per_minute: 5, per_day: 100}`, `tiers: tier name "a " begins or ends with a space (U+0020)`},
		"two lines in tier name": {free + "  \"a\n # b\n  c\": {per_minute: 5, per_day: 100}", "tiers: line 3: could not find expected ':'"},
		"tier name a number":     {free + "  5: {per_minute: 5, per_day: 100}", "tiers: line 3: want a string as a key, got 5"},
		"tier name null":         {free + "  ~: {per_minute: 5, per_day: 100}", "tiers: line 3: want a string as a key, got ~"},
		"duplicate tier":         {free + "  \"free\": {per_minute: 6, per_day: 100}", "tiers: line 3: free: duplicate key; first on line 2"},
		"tier nothing":           {free + "  pro:", "tiers: line 3: pro: want a mapping of limits, got nothing"},
		"tier a number":          {free + "  pro: 5", "tiers: line 3: pro: want a mapping of limits, got 5"},
		"tier a list":            {free + "  pro: [5, 100]", "tiers: line 3: pro: want a mapping of limits, got a list"},
		"unknown field":          {free + "  pro:\n    per_minuet: 5", "tiers: line 4: pro.per_minuet: unknown field; want per_minute or per_day"},
		"Go field":               {free + "  pro: {PerMinute: 5}", "tiers: line 3: pro.PerMinute: unknown field; want per_minute or per_day"},
		"duplicate field":        {free + "  pro: {per_day: 5,\n per_day: 5}", "tiers: line 4: pro.per_day: duplicate key; first on line 3"},
		"no per_minute":          {free + "  pro: {per_day: 5}", "tiers: line 3: pro.per_minute: missing field"},
		"no per_day":             {free + "  pro: {per_minute: 5}", "tiers: line 3: pro.per_day: missing field"},
		"no field":               {free + "  pro: {}", "tiers: line 3: pro.per_minute: missing field"},
		"day below minute":       {strings.ReplaceAll(free, "100", "3"), "tiers: free.per_day: 3 is less than per_minute 5"},
		"several broken rules":   {"tiers:\n  b: {per_minute: 0, per_day: 9}\n  a: {per_minute: 5, per_day: 3}\nfallback: a", "tiers: a.per_day: 3 is less than per_minute 5; b.per_minute: 0 is less than 1"},

		// A number.
		"zero":                {withMinute("0"), "tiers: free.per_minute: 0 is less than 1"},
		"negative":            {withMinute("-5"), "tiers: free.per_minute: -5 is less than 1"},
		"fraction":            {withMinute("1.5"), notDecimal + "1.5"},
		"whole fraction":      {withMinute("5.0"), notDecimal + "5.0"},
		"double-quoted":       {withMinute(`"5"`), notDecimal + `"5"`},
		"single-quoted":       {withMinute("'5'"), notDecimal + `"5"`},
		"block scalar":        {"tiers:\n free:\n  per_day: 5\n  per_minute: |-\n   5\n", `tiers: line 4: free.per_minute: want a whole number in decimal digits, got "5"`},
		"exponent":            {withMinute("5e3"), notDecimal + "5e3"},
		"hexadecimal":         {withMinute("0x10"), notDecimal + "0x10"},
		"octal":               {withMinute("0o10"), notDecimal + "0o10"},
		"octal of YAML 1.1":   {withMinute("010"), notDecimal + "010"},
		"binary":              {withMinute("0b10"), notDecimal + "0b10"},
		"sexagesimal":         {withMinute("1:30"), notDecimal + "1:30"},
		"grouped":             {withMinute("1_000"), notDecimal + "1_000"},
		"signed":              {withMinute("+5"), notDecimal + "+5"},
		"minus zero":          {withMinute("-0"), notDecimal + "-0"},
		"other digits":        {withMinute("٥"), notDecimal + "٥"},
		"two numbers":         {withMinute("5 6"), notDecimal + "5 6"},
		"infinity":            {withMinute(".inf"), notDecimal + ".inf"},
		"no value":            {withMinute(""), notDecimal + "nothing"},
		"null value":          {withMinute("null"), notDecimal + "null"},
		"boolean":             {withMinute("true"), notDecimal + "true"},
		"list":                {withMinute("[5]"), notDecimal + "a list"},
		"mapping":             {withMinute("{a: 5}"), notDecimal + "a mapping"},
		"out of range":        {withMinute("99999999999999999999"), "tiers: line 1: free.per_minute: 99999999999999999999 is out of range"},
		"far out of range":    {withMinute("-" + strings.Repeat("9", 1000)), "tiers: line 1: free.per_minute: -" + strings.Repeat("9", 79) + "… is out of range"},
		"quoted out of range": {withMinute(`"99999999999999999999"`), notDecimal + `"99999999999999999999"`},

		// What stands for something else.
		"anchor":            {withMinute("&five 5"), "tiers: line 1: free.per_minute: anchor &five is not allowed"},
		"anchor on a table": {"tiers: &all {free: {per_minute: 5, per_day: 100}}", "tiers: line 1: tiers: anchor &all is not allowed"},
		"anchor on a key":   {"&t tiers: {}", "tiers: line 1: anchor &t is not allowed"},
		"anchor on the top": {"--- &top\n" + free, "tiers: line 1: anchor &top is not allowed"},
		"alias":             {"tiers: {&a free: {per_minute: 5, per_day: 100}, pro: *a}", "tiers: line 1: anchor &a is not allowed"},
		"alias to a key":    {"tiers: {&f free: {per_minute: 5, per_day: 100}}\nfallback: *f", "tiers: line 2: fallback: alias *f is not allowed"},
		"alias to itself":   {"tiers: &a {free: *a}", "tiers: line 1: tiers: anchor &a is not allowed"},
		"unknown alias":     {withMinute("*five"), "tiers: unknown anchor 'five' referenced"},
		"merge key":         {"tiers: {free: {<<: {per_minute: 5}, per_day: 100}}", "tiers: line 1: merge key << is not allowed"},
		"tag":               {withMinute("!!int 5"), "tiers: line 1: free.per_minute: tag !!int is not allowed"},
		"tag that converts": {withMinute(`!!int "5"`), "tiers: line 1: free.per_minute: tag !!int is not allowed"},
		"tag of one's own":  {withMinute("!limit 5"), "tiers: line 1: free.per_minute: tag !limit is not allowed"},
		"tag on a key":      {"!!str tiers: {}", "tiers: line 1: tag !!str is not allowed"},
		"tag on the top":    {"--- !!map\n" + free, "tiers: line 1: tag !!map is not allowed"},
		"YAML directive":    {"%YAML 1.2\n---\n" + free, "tiers: line 1: directives (%) are not allowed"},
		"tag directive":     {"# x\n%TAG ! tag:x,2026:\n---\n" + free, "tiers: line 2: directives (%) are not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := tiers.Load(strings.NewReader(tc.file))
			require.EqualError(t, err, tc.want)
			assert.Nil(t, s)
		})
	}
}

func TestLoadReaders(t *testing.T) {
	t.Run("nil", func(t *testing.T) {
		_, err := tiers.Load(nil)
		assert.EqualError(t, err, "tiers: nil reader")
	})
	t.Run("failing", func(t *testing.T) {
		broken := errors.New("disk on fire")
		_, err := tiers.Load(iotest.ErrReader(broken))
		require.ErrorIs(t, err, broken)
		assert.EqualError(t, err, "tiers: disk on fire")
	})
	t.Run("one byte at a time", func(t *testing.T) {
		s, err := tiers.Load(iotest.OneByteReader(strings.NewReader(free)))
		require.NoError(t, err)
		assert.Equal(t, 5, s.Lookup("free").PerMinute)
	})
	t.Run("endless", func(t *testing.T) {
		r := new(zeros)
		_, err := tiers.Load(r)
		assert.EqualError(t, err, "tiers: file is larger than 1 MiB")
		assert.EqualValues(t, 1<<20+1, *r, "bytes read")
	})
}

// zeros reads as zero bytes without end, and counts them.
type zeros int

func (z *zeros) Read(p []byte) (int, error) {
	*z += zeros(len(p))
	clear(p)
	return len(p), nil
}

func TestLoadFile(t *testing.T) {
	dir := t.TempDir()
	write := func(t *testing.T, content string) string {
		path := filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "_")+".yaml")
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	t.Run("good", func(t *testing.T) {
		s, err := tiers.LoadFile(write(t, free))
		require.NoError(t, err)
		assert.Equal(t, tiers.Limits{PerMinute: 5, PerDay: 100}, s.Lookup("free"))
	})
	t.Run("broken rule", func(t *testing.T) {
		path := write(t, strings.ReplaceAll(free, "100", "3"))
		_, err := tiers.LoadFile(path)
		assert.EqualError(t, err, "tiers: free.per_day: 3 is less than per_minute 5 (in "+path+")")
	})
	t.Run("too large", func(t *testing.T) {
		path := write(t, strings.Repeat("#", 1<<20+1))
		_, err := tiers.LoadFile(path)
		assert.EqualError(t, err, "tiers: file is larger than 1 MiB (in "+path+")")
	})
	t.Run("missing", func(t *testing.T) {
		path := filepath.Join(dir, "missing.yaml")
		_, err := tiers.LoadFile(path)
		require.ErrorIs(t, err, fs.ErrNotExist)
		assert.ErrorContains(t, err, "tiers: open "+path+": ")
	})
	t.Run("no path", func(t *testing.T) {
		_, err := tiers.LoadFile("")
		assert.ErrorIs(t, err, fs.ErrNotExist)
	})
	t.Run("directory", func(t *testing.T) {
		_, err := tiers.LoadFile(dir)
		assert.ErrorContains(t, err, dir)
		assert.Regexp(t, "^tiers: ", err)
	})
	t.Run("unreadable", func(t *testing.T) {
		path := write(t, free)
		require.NoError(t, os.Chmod(path, 0))
		if _, err := os.ReadFile(path); err == nil {
			t.Skip("this user may read everything")
		}
		_, err := tiers.LoadFile(path)
		require.ErrorIs(t, err, fs.ErrPermission)
		assert.ErrorContains(t, err, path)
	})
}
