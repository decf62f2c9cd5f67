package ginlimit_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/redisclient"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/tiers"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	return string(text)
}

func blocks(text, language string) (blocks []string) {
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)\n```").FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

// The README's Go code is that of a compiled example, line by line.
func TestReadmeCodeIsCompiled(t *testing.T) {
	source, err := os.ReadFile("../ginlimit/example_test.go")
	require.NoError(t, err)
	example := regexp.MustCompile(`(?m)^\t+`).ReplaceAllString(string(source), "")
	code := blocks(readme(t), "go")
	require.NotEmpty(t, code)
	for _, block := range code {
		require.Contains(t, example, regexp.MustCompile(`(?m)^\t+`).ReplaceAllString(block, ""))
	}
}

func TestReadmeTierFileLoads(t *testing.T) {
	files := blocks(readme(t), "yaml")
	require.Len(t, files, 1)
	store, err := tiers.Load(strings.NewReader(files[0]))
	require.NoError(t, err)
	require.Equal(t, tiers.Default(), store, "it shows the defaults")
}

func TestReadmeOpensWithTheTwoCommands(t *testing.T) {
	opening := blocks(readme(t), "sh")[0]
	require.Contains(t, opening, "go run ./example_app")
	require.Contains(t, opening, "go test ./...")
}

// The tables of options name every option that there is.
func TestReadmeNamesEveryOption(t *testing.T) {
	text := readme(t)
	out, err := exec.CommandContext(t.Context(), "go", "doc", "-short",
		"github.com/gin-tiers/ratelimit/ginlimit").Output()
	require.NoError(t, err)
	options := regexp.MustCompile(`func (With\w+)\(`).FindAllStringSubmatch(string(out), -1)
	require.NotEmpty(t, options)
	for _, option := range options {
		require.Contains(t, text, "`"+option[1]+"(")
	}
}

// The minimal ACL is enough for all that a limiter does, and for the look at the server.
func TestReadmeACL(t *testing.T) {
	_, rules, ok := strings.Cut(readme(t), "ACL SETUSER ")
	require.True(t, ok)
	rules, _, _ = strings.Cut(rules, "```")
	srv := redistest.Start(t)
	args := []any{"acl", "setuser"}
	for _, rule := range strings.Fields(rules) {
		args = append(args, rule)
	}
	require.NoError(t, srv.Client(t).Do(t.Context(), args...).Err())
	rdb, err := redisclient.New("redis://ginlimit:PASSWORD@" + srv.Addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = rdb.Close() })
	require.NoError(t, redisclient.SelfCheck(t.Context(), rdb))

	l := ginlimit.NewLimiter(rdb)
	api := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 1, 1))))
	require.Equal(t, "1 0 minute", api.as("alice").limits(t))
	require.Equal(t, "1 0 minute", api.as("alice").limits(t))
	_, err = l.Peek(t.Context(), "alice", 1, time.Minute)
	require.NoError(t, err)
	_, err = l.Check(t.Context(), "bob", 1, 24*time.Hour)
	require.NoError(t, err)
	require.Equal(t, "1 0 day", api.as("bob").limits(t), "giving back is allowed too")
	require.Zero(t, srv.Client(t).Exists(t.Context(), "ratelimit:bob:60").Val())
	require.NoError(t, l.Reset(t.Context(), "alice"))
}
