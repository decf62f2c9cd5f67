package ginlimit_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
