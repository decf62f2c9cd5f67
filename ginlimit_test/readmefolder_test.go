package ginlimit_test

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit_test/apptest"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// freePort is a second file of the program. It stands for the README's fixed port, which may be taken here.
const freePort = `package main

import (
	"fmt"
	"log"
	"net"
)

func freePort() net.Listener {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr())
	return listener
}
`

// The README is followed in an empty folder: a module of its own, the quick start, six requests, and the
// answer that it shows. A replacement stands for a published version, since there is none yet.
func TestReadmeInAnEmptyFolder(t *testing.T) {
	const (
		address = `"redis://localhost:6379"`
		run     = `router.Run("localhost:8080")`
		client  = "\trdb, err := redisclient.New(" + address + ")\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n"
	)
	quickStart := blocks(readme(t), "go")[0]
	require.Contains(t, quickStart, client)
	require.Contains(t, quickStart, run)
	program := func(replace ...string) string {
		replace = append(replace, run, "router.RunListener(freePort())")
		return strings.NewReplacer(replace...).Replace(quickStart)
	}
	t.Run("Redis", func(t *testing.T) {
		t.Parallel()
		followReadme(t, program(address, strconv.Quote(redistest.Start(t).URL())))
	})
	t.Run("no Redis", func(t *testing.T) {
		t.Parallel()
		require.Contains(t, quickStart, "// without Redis: NewMemoryLimiter(), and neither rdb nor its import")
		followReadme(t, program(client, "", "ginlimit.NewLimiter(rdb)", "ginlimit.NewMemoryLimiter()",
			`	"github.com/gin-tiers/ratelimit/ginlimit/redisclient"`, ""))
	})
}

// followReadme builds the program in an empty folder, sends six requests, and looks at the sixth answer.
func followReadme(t *testing.T, program string) {
	t.Helper()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	folder := t.TempDir()
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = folder
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	const module = "github.com/gin-tiers/ratelimit"
	require.Contains(t, readme(t), "`go mod init example.com/chat`, `go mod tidy` and `go run .`")
	run("go", "mod", "init", "example.com/chat")
	run("go", "mod", "edit", "-require="+module+"@v0.0.0", "-replace="+module+"="+root)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "main.go"), []byte(program), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "freeport.go"), []byte(freePort), 0o600))
	sums, err := os.ReadFile("../go.sum")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "go.sum"), sums, 0o600))
	run("go", "mod", "tidy")
	run("go", "build", "-o", "mine", ".")

	cmd := exec.CommandContext(t.Context(), filepath.Join(folder, "mine"))
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(stdout)
	address := ""
	for lines.Scan() { // Gin's own lines stand before it
		if address = lines.Text(); strings.HasPrefix(address, "127.0.0.1:") {
			break
		}
	}
	post := func() (*http.Response, error) {
		return http.Post("http://"+address+"/v1/chat/completions", "application/json", strings.NewReader("{}"))
	}
	for range 5 {
		response, err := post()
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusOK, response.StatusCode)
	}
	response, err := post()
	require.NoError(t, err)
	got, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())

	shown := blocks(readme(t), "console")
	require.Len(t, shown, 1)
	head, body, _ := strings.Cut(shown[0], "\n\n")
	status, headers, _ := strings.Cut(head, "\n")
	require.Equal(t, status, "HTTP/1.1 "+response.Status)
	for line := range strings.Lines(headers) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if name == "Retry-After" {
			require.Regexp(t, `^([1-5]?\d|60)$`, response.Header.Get(name))
			continue
		}
		require.Equal(t, value, response.Header.Get(name), name)
	}
	body, _, _ = strings.Cut(strings.ReplaceAll(body, "\n", ""), "…")
	timeless := regexp.MustCompile(`Retry in \d+ s\.`)
	require.Contains(t, timeless.ReplaceAllString(string(got), "Retry in N s."),
		timeless.ReplaceAllString(body, "Retry in N s."))
}

// The README's first command needs nothing but the repository.
func TestReadmeStartsTheApp(t *testing.T) {
	t.Parallel()
	require.Contains(t, blocks(readme(t), "sh")[0], "go run ./example_app ")
	app := apptest.Start(t, apptest.Build(t))
	response, err := http.Get(app.URL + "/readyz")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
}
