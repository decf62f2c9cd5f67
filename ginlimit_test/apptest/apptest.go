// Package apptest builds the example app and runs it as a process of its own, so that tests meet it as its
// users do: over a socket, with settings from the environment, and with signals.
package apptest

import (
	"bufio"
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const module = "github.com/gin-tiers/ratelimit"

// patience is how long the app may take to start or to end. A healthy one needs far less.
const patience = 40 * time.Second

// Build compiles the app into a temporary folder of the test and returns the binary's path.
func Build(tb testing.TB) string {
	tb.Helper()
	dir, err := exec.CommandContext(tb.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	require.NoError(tb, err)
	binary := filepath.Join(tb.TempDir(), "example_app")
	build := exec.CommandContext(tb.Context(), "go", "build", "-o", binary, "./example_app")
	// also from a nested module, whose go.sum does not know what the app needs
	build.Dir = strings.TrimSpace(string(dir))
	out, err := build.CombinedOutput()
	require.NoError(tb, err, "%s", out)
	return binary
}

// App is a run of the example app.
type App struct {
	URL string // http://host:port

	tb     testing.TB
	cmd    *exec.Cmd
	stderr bytes.Buffer
	ready  chan string   // where it listens
	ended  chan struct{} // closed once it has ended
}

// Start runs a binary that Build made and returns once the app listens. Its environment is env, such as
// "REDIS_URL=…", and nothing else; unless env says otherwise it listens on a free loopback port. It is killed
// at the end of the test.
func Start(tb testing.TB, binary string, env ...string) *App {
	tb.Helper()
	a := launch(tb, binary, env)
	select {
	case a.URL = <-a.ready:
	case <-a.ended:
		require.FailNow(tb, "the app has ended", "%s", &a.stderr)
	case <-time.After(patience):
		require.FailNow(tb, "the app does not listen")
	}
	return a
}

// Run runs a binary as Start does, but to its end, and returns as Wait does.
func Run(tb testing.TB, binary string, env ...string) (code int, stderr string) {
	tb.Helper()
	return launch(tb, binary, env).Wait()
}

func launch(tb testing.TB, binary string, env []string) *App {
	tb.Helper()
	a := &App{tb: tb, cmd: exec.Command(binary), ready: make(chan string, 1), ended: make(chan struct{})}
	a.cmd.Env = append([]string{"LISTEN_ADDR=127.0.0.1:0"}, env...) // the last of a name wins
	a.cmd.Stderr = &a.stderr
	stdout, err := a.cmd.StdoutPipe()
	require.NoError(tb, err)
	require.NoError(tb, a.cmd.Start())
	tb.Cleanup(func() {
		_ = a.cmd.Process.Kill()
		<-a.ended
	})
	go func() {
		defer close(a.ended)
		for out := bufio.NewScanner(stdout); out.Scan(); {
			if url, found := strings.CutPrefix(out.Text(), "listening on "); found {
				a.ready <- url
			}
		}
		_ = a.cmd.Wait() // how it ended is in ProcessState
	}()
	return a
}

// Terminate sends SIGTERM.
func (a *App) Terminate() {
	a.tb.Helper()
	require.NoError(a.tb, a.cmd.Process.Signal(syscall.SIGTERM))
}

// Kill ends the app at once, without a chance to clean up, and returns when it has ended.
func (a *App) Kill() {
	a.tb.Helper()
	require.NoError(a.tb, a.cmd.Process.Kill())
	<-a.ended
}

// Wait returns the exit code and all of standard error once the app has ended.
func (a *App) Wait() (code int, stderr string) {
	a.tb.Helper()
	select {
	case <-a.ended:
	case <-time.After(patience):
		require.FailNow(a.tb, "the app does not end")
	}
	return a.cmd.ProcessState.ExitCode(), a.stderr.String()
}
