package migration_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The Go code of docs/migrating.md is that of functions of this package, so it compiles and does what the
// other tests show.
func TestPageIsThisCode(t *testing.T) {
	page, err := os.ReadFile("../../../docs/migrating.md")
	require.NoError(t, err)
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	var code strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		code.Write(text)
	}
	functions := regexp.MustCompile("(?s)```go\n(.*?\n)```").FindAllStringSubmatch(string(page), -1)
	require.Len(t, functions, 8)
	for _, function := range functions {
		for _, f := range strings.Split(function[1], "\n\nfunc ") {
			require.Contains(t, code.String(), strings.TrimPrefix(f, "func "))
		}
	}
}
