package redistest_test

import (
	"context"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// alive tells whether a process listens there: true for a paused one, false for a dead one.
func alive(addr string) bool {
	conn, err := net.Dial("tcp", addr)
	return err == nil && conn.Close() == nil
}

// folder is where the server keeps its files.
func folder(t *testing.T, s *redistest.Server) string {
	return s.Client(t).ConfigGet(t.Context(), "dir").Val()["dir"]
}

func TestStartAnswers(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	opt, err := redis.ParseURL(s.URL())
	require.NoError(t, err)
	require.Equal(t, s.Addr, opt.Addr)
	require.Equal(t, "PONG", s.Client(t).Ping(t.Context()).Val())
	require.Empty(t, s.Client(t).ConfigGet(t.Context(), "save").Val()["save"])
}

func TestStartTakesOptions(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t, "--maxmemory", "5mb", "--appendonly", "yes").Client(t)
	require.Equal(t, "5242880", rdb.ConfigGet(t.Context(), "maxmemory").Val()["maxmemory"])
	require.Equal(t, "yes", rdb.ConfigGet(t.Context(), "appendonly").Val()["appendonly"])
}

func TestServersShareNothing(t *testing.T) {
	t.Parallel()
	addrs := map[string]bool{}
	for range 5 {
		s := redistest.Start(t)
		addrs[s.Addr] = true
		require.Equal(t, int64(1), s.Client(t).Incr(t.Context(), "n").Val())
	}
	require.Len(t, addrs, 5)
}

func TestServersEndWithTheTest(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]func(*redistest.Server){
		"running":   func(*redistest.Server) {},
		"paused":    (*redistest.Server).Pause,
		"stopped":   (*redistest.Server).Stop,
		"restarted": (*redistest.Server).Restart,
	} {
		var addr, dir string
		t.Run(name, func(t *testing.T) {
			s := redistest.Start(t)
			addr, dir = s.Addr, folder(t, s)
			last(s)
		})
		require.False(t, alive(addr), name)
		require.NoDirExists(t, dir, name)
	}
}

func TestStopAndKillEndTheServer(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*redistest.Server){
		"stop":        (*redistest.Server).Stop,
		"kill":        (*redistest.Server).Kill,
		"stop paused": func(s *redistest.Server) { s.Pause(); s.Stop() },
		"kill paused": func(s *redistest.Server) { s.Pause(); s.Kill() },
		"twice":       func(s *redistest.Server) { s.Stop(); s.Kill() },
	} {
		s := redistest.Start(t)
		require.True(t, alive(s.Addr), name)
		end(s)
		require.False(t, alive(s.Addr), name)
	}
}

func TestRestartKeepsWhatWasPersisted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		end  func(*redistest.Server)
		want string
	}{
		"killed":        {nil, (*redistest.Server).Kill, ""},
		"still running": {nil, func(*redistest.Server) {}, ""},
		"append-only and killed": {[]string{"--appendonly", "yes", "--appendfsync", "always"},
			(*redistest.Server).Kill, "v"},
		"snapshots and stopped":   {[]string{"--save", "900 1"}, (*redistest.Server).Stop, "v"},
		"snapshots and restarted": {[]string{"--save", "900 1"}, func(*redistest.Server) {}, "v"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t, tt.args...)
			addr, pid, dir := s.Addr, s.PID(), folder(t, s)
			require.NoError(t, s.Client(t).Set(t.Context(), "k", "v", 0).Err())

			tt.end(s)
			s.Restart()

			require.Equal(t, addr, s.Addr)
			require.NotEqual(t, pid, s.PID())
			require.Equal(t, dir, folder(t, s))
			require.Equal(t, tt.want, s.Client(t).Get(t.Context(), "k").Val())
		})
	}
}

func TestRestartWaitsUntilLoaded(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--save", "900 1", "--rdbcompression", "no",
		// half a millisecond for each key
		"--key-load-delay", "500", "--loading-process-events-interval-bytes", "1024")
	rdb := s.Client(t)
	for i := range 400 {
		require.NoError(t, rdb.Set(t.Context(), strconv.Itoa(i), strings.Repeat("v", 1024), 0).Err())
	}

	s.Restart()

	rdb = redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1}) // a retry would hide LOADING
	t.Cleanup(func() { _ = rdb.Close() })
	require.Equal(t, int64(400), rdb.DBSize(t.Context()).Val())
}

func TestPausedServerAnswersLate(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = rdb.Close() })
	require.NoError(t, rdb.Ping(t.Context()).Err())

	s.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, rdb.Incr(ctx, "n").Err(), os.ErrDeadlineExceeded)

	s.Resume()
	require.Equal(t, int64(2), rdb.Incr(t.Context(), "n").Val(), "the request that timed out ran after all")
}

func TestCallsCountsScriptsToo(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	require.Zero(t, s.Calls(t, "incr"))

	for range 3 {
		require.NoError(t, incr.Eval(t.Context(), rdb, []string{"n"}).Err())
	}
	require.NoError(t, rdb.Incr(t.Context(), "n").Err())
	require.Equal(t, 3, s.Calls(t, "EVAL"))
	require.Equal(t, 4, s.Calls(t, "incr"))

	s.ResetStats(t)
	require.Zero(t, s.Calls(t, "incr"))
}

func BenchmarkStart(b *testing.B) {
	for name, start := range map[string]func(testing.TB){
		"server":   func(tb testing.TB) { redistest.Start(tb) },
		"cluster":  func(tb testing.TB) { redistest.StartCluster(tb, 3, 1) },
		"sentinel": func(tb testing.TB) { redistest.StartSentinel(tb) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				start(b)
			}
		})
	}
}
