package ginlimit_test

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Below the face, packages import downwards only, and nothing imports the face.
func TestInternalImportsRunOneWay(t *testing.T) {
	const module = "github.com/gin-tiers/ratelimit/"
	const internal = module + "ginlimit/internal/"
	allowed := map[string][]string{
		internal + "budget":         {module + "tiers"},
		internal + "redisstore":     {internal + "budget", module + "luascripts"},
		internal + "memstore":       {internal + "budget"},
		internal + "rejectioncache": {internal + "budget"},
		internal + "clientaddr":     {},
		internal + "plan":           {internal + "budget", module + "tiers", module + "ginlimit/headers"},
		internal + "request":        {internal + "budget", internal + "plan", module + "ginlimit/headers"},
		internal + "storetest":      {internal + "budget"},
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`,
		"../ginlimit/internal/...").Output()
	require.NoError(t, err)
	seen := 0
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		require.Contains(t, allowed, fields[0])
		seen++
		for _, imported := range fields[1:] {
			if strings.HasPrefix(imported, module) {
				require.Contains(t, allowed[fields[0]], imported, fields[0])
			}
			if fields[0] != internal+"clientaddr" { // that asks Gin whom it trusts
				require.NotContains(t, imported, "gin-gonic", fields[0])
			}
		}
	}
	require.Len(t, allowed, seen)
}

// Whoever does not import a sub-package does not build what only that sub-package needs.
func TestFaceIsLight(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "../ginlimit", "../tiers").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "github.com/gin-tiers/ratelimit/tiers\n")
	for _, heavy := range []string{"fsnotify", "prometheus", "opentelemetry", "testify", "net/http/httptest"} {
		require.NotContains(t, string(out), heavy)
	}
}

// The dialects of headers know nothing of the limiter.
func TestHeadersStandAlone(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "../ginlimit/headers").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "httpsfv")
	above := []string{"ratelimit/ginlimit\n", "ratelimit/ginlimit/internal", "gin-gonic", "go-redis"}
	for _, above := range above {
		require.NotContains(t, string(out), above)
	}
}

// Imports run one way: what each folder may import of other modules and of this one. Tests are not
// looked at.
func TestImportsRunOneWay(t *testing.T) {
	const module = "github.com/gin-tiers/ratelimit/"
	allowed := map[string][]string{
		"luascripts": {"github.com/redis/go-redis/"},
		"tiers": {module + "tiers", "github.com/go-playground/validator/", "go.yaml.in/yaml/",
			"github.com/fsnotify/"},
		"ginlimit": {module + "luascripts", module + "tiers", module + "ginlimit", "github.com/gin-gonic/gin",
			"github.com/redis/go-redis/",
			"github.com/google/uuid", "github.com/hashicorp/golang-lru/", "github.com/sony/gobreaker/",
			"github.com/stretchr/testify/", "pgregory.net/rapid", "github.com/tiktoken-go/tokenizer/",
			"github.com/tidwall/gjson", "github.com/dunglas/httpsfv", "github.com/prometheus/",
			"go.opentelemetry.io/otel"},
		"example_app":   {module + "luascripts", module + "tiers", module + "ginlimit", "github.com/"},
		"ginlimit_test": {module, "github.com/"},
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`,
		"../...").Output()
	require.NoError(t, err)
	seen := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		folder, _, _ := strings.Cut(strings.TrimPrefix(fields[0], module), "/")
		seen[folder] = true
		for _, imported := range fields[1:] {
			if host, _, _ := strings.Cut(imported, "/"); !strings.Contains(host, ".") {
				continue // the standard library
			}
			require.True(t, slices.ContainsFunc(allowed[folder], func(prefix string) bool {
				return strings.HasPrefix(imported, prefix)
			}), "%s imports %s", fields[0], imported)
			require.NotContains(t, imported+"/", module+"example_app/")
			if folder == "example_app" {
				require.NotContains(t, imported+"/", module+"ginlimit_test/")
			}
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(allowed)), slices.Collect(maps.Keys(seen)))
}
