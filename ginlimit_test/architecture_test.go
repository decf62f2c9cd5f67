package ginlimit_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Imports run one way: luascripts and tiers know nobody, ginlimit knows both, the app all. Gin is
// known from ginlimit on.
func TestImportsRunOneWay(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "../...").Output()
	require.NoError(t, err)
	const module = "github.com/gin-tiers/ratelimit/"
	forbidden := map[string][]string{
		"luascripts": {module + "tiers", module + "ginlimit", module + "example_app", "github.com/gin-gonic/gin"},
		"tiers":      {module + "luascripts", module + "ginlimit", module + "example_app", "github.com/gin-gonic/gin", "github.com/redis/"},
		"ginlimit":   {module + "ginlimit_test", module + "example_app"},
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		top, _, _ := strings.Cut(strings.TrimPrefix(fields[0], module), "/")
		seen[top] = true
		for _, imported := range fields[1:] {
			for _, prefix := range forbidden[top] {
				require.False(t, imported == prefix || strings.HasPrefix(imported, strings.TrimSuffix(prefix, "/")+"/"),
					"%s imports %s", fields[0], imported)
			}
		}
	}
	for _, top := range []string{"luascripts", "tiers", "ginlimit", "example_app"} {
		require.True(t, seen[top], "%s was looked at", top)
	}
}
