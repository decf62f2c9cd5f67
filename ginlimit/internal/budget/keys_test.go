package budget

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func sha(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + hex.EncodeToString(sum[:])
}

func TestKeys(t *testing.T) {
	for _, tt := range []struct {
		id, scope string
		hashTags  bool
		window    time.Duration
		want      string
	}{
		{"user_8421", "", false, time.Minute, "ratelimit:user_8421:60"},
		{"user_8421", "", false, 24 * time.Hour, "ratelimit:user_8421:86400"},
		{"user_8421", "images", false, time.Minute, "ratelimit:user_8421:images:60"},
		{"user_8421", "", true, time.Minute, "ratelimit:{user_8421}:60"},
		{"user_8421", "images", true, time.Minute, "ratelimit:{user_8421}:images:60"},
		{"A-z_0.9@b+c=d/e", "", false, time.Second, "ratelimit:A-z_0.9@b+c=d/e:1"},
		{"a:b", "c:d", false, time.Minute, "ratelimit:a%3Ab:c%3Ad:60"},
		{"100%", "", false, time.Minute, "ratelimit:100%25:60"},
		{"{a}", "", true, time.Minute, "ratelimit:{%7Ba%7D}:60"},
		{"!upstream/openai", "", false, time.Minute, "ratelimit:%21upstream/openai:60"},
		{"a b\r\n\x00", "", false, time.Minute, "ratelimit:a%20b%0D%0A%00:60"},
		{"é\xff", "", false, time.Minute, "ratelimit:%C3%A9%FF:60"},
		{"ip/2001:db8::/64", "", false, time.Minute, "ratelimit:ip/2001%3Adb8%3A%3A/64:60"},
		{strings.Repeat("a", 128), "", false, time.Minute, "ratelimit:" + strings.Repeat("a", 128) + ":60"},
		{strings.Repeat("a", 129), "", false, time.Minute, "ratelimit:" + sha(strings.Repeat("a", 129)) + ":60"},
		{strings.Repeat("a", 125) + ":", "", false, time.Minute,
			"ratelimit:" + strings.Repeat("a", 125) + "%3A:60"},
		{strings.Repeat("a", 126) + ":", "", false, time.Minute,
			"ratelimit:" + sha(strings.Repeat("a", 126)+":") + ":60"},
		{"sha256-x", "", false, time.Minute, "ratelimit:" + sha("sha256-x") + ":60"},
		{"SHA256-x", "", false, time.Minute, "ratelimit:SHA256-x:60"},
	} {
		names := Names{HashTags: tt.hashTags, Scope: tt.scope}
		require.Equal(t, tt.want, names.Key(tt.id, Dimension{Window: tt.window}),
			"id %q, scope %q", tt.id, tt.scope)
	}
}

// TagOf changes the tag, but only with hash tags.
func TestKeysOfATag(t *testing.T) {
	org := func(id string) string {
		org, _, _ := strings.Cut(id, "/")
		return org
	}
	tagged, long := Names{HashTags: true, TagOf: org}, strings.Repeat("a", 129)
	for id, want := range map[string]string{
		"acme/alice": "ratelimit:{acme}acme/alice:60",
		"acme":       "ratelimit:{acme}:60",
		"/alice":     "ratelimit:{/alice}:60",
		"a}b/alice":  "ratelimit:{a%7Db}a%7Db/alice:60",
		long + "/":   "ratelimit:{" + sha(long) + "}" + sha(long+"/") + ":60",
	} {
		require.Equal(t, want, tagged.Key(id, Dimension{Window: Minute}))
	}
	require.Equal(t, "ratelimit:acme/alice:60", Names{TagOf: org}.Key("acme/alice", Dimension{Window: Minute}))

	oneSlot := func(n Names, a, b string) bool { return n.OneSlot(n.Owner(a), n.Owner(b)) }
	require.True(t, oneSlot(tagged, "acme/alice", "acme"))
	require.True(t, oneSlot(tagged, "acme/alice", "acme/bob"))
	require.False(t, oneSlot(tagged, "acme/alice", "acm"))
	require.False(t, oneSlot(Names{HashTags: true}, "acme/alice", "acme"))
	require.True(t, oneSlot(Names{}, "acme/alice", "acme"), "one server")
}

func TestCheckPrefix(t *testing.T) {
	for _, prefix := range []string{"ratelimit", "staging:ratelimit", "a", "A-z_0.9@b+c=d/e"} {
		require.NoError(t, CheckPrefix(prefix))
		names := Names{Prefix: prefix, HashTags: true}
		require.Equal(t, prefix+":{alice}:60", names.Key("alice", Dimension{Window: Minute}))
	}
	for _, prefix := range []string{"", ":a", "a:", "a{b", "a}", "a b", "é", strings.Repeat("a", 129)} {
		require.ErrorContains(t, CheckPrefix(prefix), "prefix")
	}
}

// A part says what it stands for: read back it is the original, or it is the hash of it. So no two
// parts are alike, and none is long.
func FuzzParts(f *testing.F) {
	for _, part := range []string{
		"user_8421", "A-z_0.9@b+c=d/e", "a:b", "100%", "a%3Ab", "{a}", "Alice", "a b", "a_b",
		"\x01\x1f\x7f\xff\x00\r\n", "é",
		"ip/2001:db8::/64", "sha256-", "sha256-x", "SHA256-x", strings.Repeat("a", 128), strings.Repeat("a", 129),
		strings.Repeat("a", 300), strings.Repeat(":", 42) + "ab", strings.Repeat(":", 43),
		strings.Repeat("\xff", 128),
	} {
		f.Add(part)
	}
	f.Fuzz(func(t *testing.T, part string) {
		got := EncodePart(part)
		require.Regexp(t, `^([A-Za-z0-9_.@+=/-]|%[0-9A-F]{2})*$`, got)
		require.LessOrEqual(t, len(got), 128)
		if strings.HasPrefix(got, "sha256-") {
			require.Equal(t, sha(part), got)
			require.True(t, strings.HasPrefix(part, "sha256-") || 3*len(part) > 128, "hashed for no reason")
			return
		}
		back, err := url.PathUnescape(got)
		require.NoError(t, err)
		require.Equal(t, part, back)
	})
}

// Different users or scopes have different keys, whatever they are called.
func FuzzKeys(f *testing.F) {
	f.Add("alice", "a:b", "alice:a", "b")
	f.Add("ab", "c", "a", "bc")
	f.Add("a%3Ab", "", "a:b", "")
	f.Add("alice", "60", "alice", "")
	f.Add("sha256-", "", sha("sha256-"), "")
	f.Add(strings.Repeat("x", 129), "", sha(strings.Repeat("x", 129)), "")
	f.Add("\xff\x00\r\n", "{", "}", "é")
	part := regexp.MustCompile(`^[A-Za-z0-9_.@+=/%-]{1,128}$`)
	f.Fuzz(func(t *testing.T, id1, scope1, id2, scope2 string) {
		key := func(id, scope string) string {
			if id == "" {
				t.Skip("an empty id never reaches a key")
			}
			key := Names{Scope: scope}.Key(id, Dimension{Window: Minute})
			parts := strings.Split(key, ":")
			require.LessOrEqual(t, len(parts), 4)
			for _, p := range parts {
				require.Regexp(t, part, p)
			}
			tagged := Names{Scope: scope, HashTags: true}
			require.Regexp(t, `^ratelimit:\{[^{}]+\}:[^{}]+$`, tagged.Key(id, Dimension{Window: Minute}),
				"one hash tag, ours")
			return key
		}
		key1, key2 := key(id1, scope1), key(id2, scope2)
		if id1 != id2 || scope1 != scope2 {
			require.NotEqual(t, key1, key2)
		} else {
			require.Equal(t, key1, key2)
		}
	})
}
