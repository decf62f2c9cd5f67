package ginlimit_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// logBuffer is where slog writes during a test.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func (b *logBuffer) warnings() int { return strings.Count(b.String(), "level=WARN") }

func captureLogs(t *testing.T) *logBuffer {
	t.Helper()
	b := &logBuffer{}
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(b, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return b
}

// deadRedis is a client of a port on which nobody listens.
func deadRedis(t *testing.T) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func TestKillSwitchLetsEverybodyPassWithoutRedis(t *testing.T) {
	captureLogs(t)
	for name, turnOn := range map[string]func(*testing.T) *ginlimit.Limiter{
		"environment": func(t *testing.T) *ginlimit.Limiter {
			t.Setenv("RATE_LIMIT_DISABLED", "true")
			return ginlimit.NewLimiter(deadRedis(t))
		},
		"flag function": func(t *testing.T) *ginlimit.Limiter {
			return ginlimit.NewLimiter(deadRedis(t), ginlimit.WithKillSwitch(func() bool { return true }))
		},
		"SetDisabled": func(t *testing.T) *ginlimit.Limiter { return disabled(ginlimit.NewLimiter(deadRedis(t))) },
		"SetDisabled of a scope": func(t *testing.T) *ginlimit.Limiter {
			l := ginlimit.NewLimiter(deadRedis(t))
			l.Scope("images").SetDisabled(true)
			return l
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := turnOn(t)
			for range 3 {
				d, err := l.Check(t.Context(), "alice", 2, time.Minute)
				require.NoError(t, err)
				require.Equal(t, ginlimit.Decision{Allowed: true, Limit: 2, Remaining: 2, Window: time.Minute}, d)
				d, err = l.Peek(t.Context(), "alice", 2, time.Minute)
				require.NoError(t, err)
				require.Equal(t, 2, d.Remaining)
			}
			require.Error(t, l.Reset(t.Context(), "alice"), "Reset asks Redis all the same")

			api := serve(t, ginlimit.New(l, resolver))
			for range 7 {
				r := api.as("alice")
				require.Equal(t, http.StatusOK, r.StatusCode)
				require.Equal(t, "5 5 minute", r.limits(t))
			}
			require.Equal(t, http.StatusUnauthorized, api.get("/v1/chat").StatusCode, "the caller is still resolved")
		})
	}
}

func TestKillSwitchSendsNothing(t *testing.T) {
	captureLogs(t)
	srv := redistest.Start(t)
	var dials atomic.Int64
	rdb := redis.NewClient(&redis.Options{Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
		dials.Add(1)
		return (&net.Dialer{}).DialContext(ctx, "tcp", srv.Addr)
	}})
	t.Cleanup(func() { _ = rdb.Close() })
	l := disabled(ginlimit.NewLimiter(rdb))
	api := serve(t, ginlimit.New(l, resolver))
	api.as("alice")
	_, err := l.Check(t.Context(), "alice", 2, time.Minute)
	require.NoError(t, err)
	require.Zero(t, dials.Load(), "not even a connection")
	require.NoError(t, l.Reset(t.Context(), "alice"), "Reset works")
	require.EqualValues(t, 1, dials.Load(), "the dialer sees what is sent")
}

func TestKillSwitchIsReadAtEachCall(t *testing.T) {
	captureLogs(t)
	l := ginlimit.NewMemoryLimiter()
	allowed := func() bool {
		d, err := l.Check(t.Context(), "alice", 1, time.Minute)
		require.NoError(t, err)
		return d.Allowed
	}
	require.True(t, allowed())
	require.False(t, allowed())
	for _, tt := range []struct {
		value string
		want  bool
	}{{"true", true}, {"false", false}, {"1", true}, {"0", false}, {"T", true}, {"yes", false}, {"on", false},
		{"", false}} {
		t.Setenv("RATE_LIMIT_DISABLED", tt.value)
		require.Equal(t, tt.want, allowed(), "RATE_LIMIT_DISABLED=%q", tt.value)
	}
	l.SetDisabled(true)
	require.True(t, allowed())
	l.SetDisabled(false)
	require.False(t, allowed())

	t.Setenv("RATE_LIMIT_DISABLED", "true")
	l.SetDisabled(false)
	require.True(t, allowed(), "either is enough")
}

func TestKillSwitchCannotBeForgotten(t *testing.T) {
	c := newClock()
	var on atomic.Bool
	opts := []ginlimit.LimiterOption{ginlimit.WithClock(c.now), ginlimit.WithKillSwitch(on.Load)}

	logs := captureLogs(t)
	ginlimit.NewMemoryLimiter(opts...)
	require.Zero(t, logs.warnings(), "it is off")

	on.Store(true)
	l := ginlimit.NewMemoryLimiter(opts...)
	require.Equal(t, 1, logs.warnings(), "at start")
	require.Contains(t, logs.String(), "kill switch is on")
	require.Contains(t, logs.String(), "cause=WithKillSwitch")
	calls := func() {
		for range 10 {
			_, err := l.Scope("images").Check(t.Context(), "alice", 1, time.Minute)
			require.NoError(t, err)
		}
	}
	calls()
	c.advance(time.Minute - time.Millisecond)
	calls()
	require.Equal(t, 1, logs.warnings(), "at most once a minute")
	c.advance(time.Millisecond)
	calls()
	require.Equal(t, 2, logs.warnings())
	c.advance(-time.Hour)
	calls()
	require.Equal(t, 3, logs.warnings(), "a clock set back does not silence it")

	on.Store(false)
	c.advance(2 * time.Hour)
	calls()
	require.Equal(t, 3, logs.warnings(), "off is silent")
	l.SetDisabled(true)
	require.Equal(t, 4, logs.warnings(), "SetDisabled warns at once")
	require.Contains(t, logs.String(), "cause=SetDisabled")
}

func TestKillSwitchThatIsNoBoolean(t *testing.T) {
	t.Setenv("RATE_LIMIT_DISABLED", "yes please")
	logs := captureLogs(t)
	l := ginlimit.NewMemoryLimiter()
	require.Equal(t, 1, logs.warnings())
	require.Contains(t, logs.String(), "no boolean")
	require.Contains(t, logs.String(), "RATE_LIMIT_DISABLED")
	for _, want := range []bool{true, false} {
		d, err := l.Check(t.Context(), "alice", 1, time.Minute)
		require.NoError(t, err)
		require.Equal(t, want, d.Allowed, "it counts as off")
	}
	require.Equal(t, 1, logs.warnings())
}
