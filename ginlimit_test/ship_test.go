package ginlimit_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/gin-tiers/ratelimit/ginlimit_test/apptest"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// compose is the part of compose.yaml that has to agree with the app.
type compose struct {
	Services struct {
		App struct {
			Ports           []string
			Environment     map[string]string
			StopGracePeriod time.Duration  `yaml:"stop_grace_period"`
			DependsOn       map[string]any `yaml:"depends_on"`
		}
		Redis struct{ Command []string }
	}
}

// The image holds what the app needs, and nobody runs as root there.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../Dockerfile")
	require.NoError(t, err)
	one := func(pattern string) string {
		t.Helper()
		found := regexp.MustCompile(`(?m)`+pattern).FindAllStringSubmatch(string(text), -1)
		require.Len(t, found, 1, pattern)
		return found[0][1]
	}
	module, err := os.ReadFile("../go.mod")
	require.NoError(t, err)
	require.Contains(t, string(module), "\ngo "+one(`^FROM golang:(\S+) AS build$`)+".")
	for source := range strings.FieldsSeq(one(`^COPY (go\.\S+ go\.\S+) \./$`)) {
		require.FileExists(t, "../"+source)
	}
	require.Regexp(t, `^[1-9]\d*:[1-9]\d*$`, one(`^USER (.*)$`))
	require.Equal(t, ":"+one(`^EXPOSE (.*)$`), one(`^ENV LISTEN_ADDR=(.*)$`))
	built := one(`^RUN CGO_ENABLED=0 go build .*-o (\S+) \./example_app$`)
	require.Equal(t, `["`+built+`"]`, one(`^ENTRYPOINT (.*)$`))
	require.Equal(t, built, one(`^COPY --from=build `+built+` (\S+)$`))

	// An image without a C library runs it only if nothing needs C.
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "../example_app")
	list.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := list.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NotContains(t, strings.Fields(string(out)), "runtime/cgo")
}

// The app starts with the settings of compose.yaml, all of which it knows, and they fit each other.
func TestCompose(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../compose.yaml")
	require.NoError(t, err)
	var c compose
	require.NoError(t, yaml.Unmarshal(text, &c))
	app := c.Services.App
	binary := apptest.Build(t)
	help, err := exec.CommandContext(t.Context(), binary, "-h").Output()
	require.NoError(t, err)
	for name := range app.Environment {
		require.Regexp(t, `(?m)^  `+name+` `, string(help))
	}
	require.Equal(t, []string{"127.0.0.1:8080" + app.Environment["LISTEN_ADDR"]}, app.Ports)
	require.Greater(t, app.StopGracePeriod, 30*time.Second, "the drain time")
	require.Contains(t, app.DependsOn, "redis")
	require.Equal(t, "redis://redis:6379", app.Environment["REDIS_URL"])
	policy := slices.Index(c.Services.Redis.Command, "--maxmemory-policy")
	require.Equal(t, "noeviction", c.Services.Redis.Command[policy+1])

	set := maps.Clone(app.Environment)
	reference := regexp.MustCompile(`^\$\{(\w+):([-?])([^}]*)\}$`)
	for name, value := range set {
		if part := reference.FindStringSubmatch(value); part != nil {
			require.Equal(t, name, part[1])
			set[name] = map[string]string{"-": part[3], "?": "sk-my-own-key=me:pro"}[part[2]]
		}
	}
	set["REDIS_URL"], set["LISTEN_ADDR"] = redistest.Start(t).URL(), "127.0.0.1:0"
	var environ []string
	for name, value := range set {
		environ = append(environ, fmt.Sprintf("%s=%s", name, value))
	}
	running := apptest.Start(t, binary, environ...)
	require.Equal(t, 200, get(t, running, "", "/readyz").StatusCode)
	require.Equal(t, 200, call(t, running, "sk-my-own-key", "Hello there").StatusCode)
	require.Equal(t, 404, get(t, running, "", "/admin/kill-switch").StatusCode, "no ADMIN_TOKEN, no admin")
}
