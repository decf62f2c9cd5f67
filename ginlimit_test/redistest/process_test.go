package redistest_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/stretchr/testify/require"
)

// rerun is another run of this test binary, for one of its tests.
func rerun(t *testing.T, test string, env ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^"+test+"$")
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

func TestWithoutARedisServer(t *testing.T) {
	t.Parallel()
	for required, want := range map[string]string{"": "SKIP", "1": "FAIL"} {
		cmd := rerun(t, "TestStartAnswers", "PATH="+t.TempDir(), "RATELIMIT_TEST_REQUIRE_REDIS="+required)
		out, err := cmd.CombinedOutput()
		require.Equal(t, required == "1", err != nil, "%s", out)
		require.Contains(t, string(out), "--- "+want+": TestStartAnswers")
		require.Contains(t, string(out), "TestStartAnswers needs Redis")
	}
}

// Without a redis-server the tests of this package are skipped, and none of them fails.
func TestNothingFailsWithoutARedisServer(t *testing.T) {
	t.Parallel()
	const inner = "REDISTEST_WITHOUT"
	if os.Getenv(inner) != "" {
		return
	}
	cmd := rerun(t, "Test.*", inner+"=1", "PATH="+t.TempDir(), "RATELIMIT_TEST_REQUIRE_REDIS=")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- SKIP: TestServerDiesWithAKilledTestBinary")
}

func TestBadOptionShowsTheLog(t *testing.T) {
	t.Parallel()
	const inner = "REDISTEST_BAD_OPTION"
	if os.Getenv(inner) != "" {
		redistest.Start(t, "--no-such-option", "1")
	}
	redistest.Start(t) // or it is skipped
	out, err := rerun(t, t.Name(), inner+"=1").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "ended by itself")
	require.Contains(t, string(out), "no-such-option")
}

func TestServerDiesWithAKilledTestBinary(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells a process that its parent was killed")
	}
	const inner = "REDISTEST_WAIT"
	if os.Getenv(inner) != "" {
		s := redistest.Start(t)
		runtime.GC() // the thread that started the server must outlive idle times
		os.Stdout.WriteString("\naddr=" + s.Addr + "\n")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	redistest.Start(t) // or it is skipped
	cmd := rerun(t, t.Name(), inner+"=1", "TMPDIR="+t.TempDir())
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())

	var addr string
	for lines := bufio.NewScanner(stdout); addr == "" && lines.Scan(); {
		if after, ok := strings.CutPrefix(lines.Text(), "addr="); ok {
			addr = after
		}
	}
	require.True(t, alive(addr), addr)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.Eventually(t, func() bool { return !alive(addr) }, 10*time.Second, 5*time.Millisecond)
}
