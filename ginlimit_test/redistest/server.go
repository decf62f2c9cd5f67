package redistest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// Server is a redis-server process on loopback. Its methods are safe for concurrent use.
type Server struct {
	Addr string // host:port, the same across restarts

	tb   testing.TB
	dir  string
	args []string
	run  atomic.Pointer[process] // the latest run
}

// Start runs a private redis-server on a free loopback port, in a temporary folder and without persistence,
// and returns once it answers. The args are further redis-server options and win over those:
//
//	redistest.Start(t, "--maxmemory", "5mb")
//
// The server is killed at the end of the test, by its own pid. Without a redis-server on PATH the test is
// skipped, or fails if RATELIMIT_TEST_REQUIRE_REDIS is 1.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	binary := lookPath(tb)
	s := &Server{tb: tb, dir: tb.TempDir(), args: args}
	// A Sentinel insists on a configuration file that it can write; the others do not mind an empty one.
	require.NoError(tb, os.WriteFile(s.file("redis.conf"), nil, 0o600))

	var err error
	for range 5 { // another process may take the port before the server binds it
		s.Addr = freeAddr(tb)
		if err = s.start(binary); !errors.Is(err, errEnded) {
			break
		}
	}
	s.must(err, "start")
	return s
}

// URL is the server as a connection string: redis://127.0.0.1:port/0.
func (s *Server) URL() string { return "redis://" + s.Addr + "/0" }

// Client connects to the server with go-redis's default settings. It is closed at the end of the test.
func (s *Server) Client(tb testing.TB) *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr})
	tb.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// PID is the process id of the server's latest run.
func (s *Server) PID() int { return s.run.Load().Pid }

// Stop shuts the server down in good order (SIGTERM) and returns when it is gone. A paused server is resumed
// to hear it.
func (s *Server) Stop() {
	s.tb.Helper()
	s.end(syscall.SIGTERM, syscall.SIGCONT)
}

// Kill ends the server at once (SIGKILL), paused or not, and returns when it is gone.
func (s *Server) Kill() {
	s.tb.Helper()
	s.end(syscall.SIGKILL)
}

// Restart runs the server again with the same port, folder and options, after a Stop if it still runs. It
// returns once the server answers and has loaded what it persisted.
func (s *Server) Restart() {
	s.tb.Helper()
	s.Stop()
	s.must(s.start(lookPath(s.tb)), "restart")
}

// Pause freezes the server (SIGSTOP): the kernel still accepts connections and requests, but no answer comes
// until Resume.
func (s *Server) Pause() {
	s.tb.Helper()
	s.must(s.run.Load().Signal(syscall.SIGSTOP), "pause")
}

// Resume wakes a paused server (SIGCONT), which then works through what arrived meanwhile.
func (s *Server) Resume() {
	s.tb.Helper()
	s.must(s.run.Load().Signal(syscall.SIGCONT), "resume")
}

// Calls tells how often the server has run a command ("evalsha", "zadd", "client|list") since it started, or
// since ResetStats. Calls from inside scripts count, and so do calls that failed.
func (s *Server) Calls(tb testing.TB, command string) int {
	tb.Helper()
	stats, err := s.fields("info", "commandstats")
	require.NoError(tb, err)
	stat, ok := stats["cmdstat_"+strings.ToLower(command)] // calls=3,usec=14,…
	if !ok {
		return 0
	}
	calls, _, _ := strings.Cut(strings.TrimPrefix(stat, "calls="), ",")
	n, err := strconv.Atoi(calls)
	require.NoError(tb, err, "commandstats: %s", stat)
	return n
}

// ResetStats sets all of Calls to zero.
func (s *Server) ResetStats(tb testing.TB) {
	tb.Helper()
	s.need(tb, "config", "resetstat")
}

var errEnded = errors.New("ended by itself")

// start runs the process and waits until it answers, and not some other server on its port.
func (s *Server) start(binary string) error {
	host, port := s.hostPort()
	args := append([]string{s.file("redis.conf"), "--bind", host, "--port", port, "--dir", s.dir,
		"--save", "", "--appendonly", "no"}, s.args...)
	run, err := startProcess(s.file("redis.log"), binary, args...)
	if err != nil {
		return err
	}
	if s.run.Swap(run) == nil {
		s.tb.Cleanup(s.Kill)
	}
	return await(startTimeout, func() error {
		select {
		case <-run.ended:
			return permanent{errEnded}
		default:
			return s.ready(run.Pid)
		}
	})
}

func (s *Server) ready(pid int) error {
	info, err := s.fields("info", "server")
	if err != nil {
		return err
	}
	if info["process_id"] != strconv.Itoa(pid) {
		return fmt.Errorf("answered by process %s, want %d", info["process_id"], pid)
	}
	return s.do("ping").Err() // LOADING is an error
}

// inSync tells why a replica does not follow its master yet.
func (s *Server) inSync() error {
	replication, err := s.fields("info", "replication")
	if err == nil && replication["master_link_status"] != "up" {
		err = fmt.Errorf("replication: %v", replication)
	}
	return err
}

func (s *Server) end(signals ...os.Signal) {
	s.tb.Helper()
	run := s.run.Load()
	for _, signal := range signals {
		if err := run.Signal(signal); !errors.Is(err, os.ErrProcessDone) {
			s.must(err, signal.String())
		}
	}
	select {
	case <-run.ended:
	case <-time.After(startTimeout):
		s.must(fmt.Errorf("still running after %v", startTimeout), "end")
	}
}

// must ends the test on an error, with the server's own log.
func (s *Server) must(err error, step string) {
	s.tb.Helper()
	if err == nil {
		return
	}
	log, logErr := os.ReadFile(s.file("redis.log"))
	s.tb.Fatalf("redis-server %s: %s: %v\n%s", s.Addr, step, errors.Join(err, logErr), log)
}

func (s *Server) file(name string) string { return filepath.Join(s.dir, name) }

func lookPath(tb testing.TB) string {
	tb.Helper()
	binary, err := exec.LookPath("redis-server")
	if err == nil {
		return binary
	}
	if os.Getenv("RATELIMIT_TEST_REQUIRE_REDIS") == "1" {
		tb.Fatalf("%s needs Redis: %v", tb.Name(), err)
	}
	tb.Skipf("%s needs Redis: %v", tb.Name(), err)
	return ""
}
