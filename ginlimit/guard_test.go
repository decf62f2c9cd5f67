package ginlimit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/luascripts"
)

// scriptedStore answers what a test says: for outages that no server can be made to have at will.
type scriptedStore struct {
	err   error
	asked int
}

func (s *scriptedStore) admit(context.Context, string, []string, []luascripts.Budget) ([]luascripts.Reply, error) {
	s.asked++
	return []luascripts.Reply{{Allowed: true, Count: 1}}, s.err
}

func (s *scriptedStore) peek(context.Context, []string, []luascripts.Budget) ([]luascripts.Reply, error) {
	s.asked++
	return []luascripts.Reply{{Allowed: true}}, s.err
}

func (s *scriptedStore) giveBack(context.Context, string, []string, []luascripts.Budget) error {
	s.asked++
	return s.err
}

func (s *scriptedStore) reset(context.Context, []string) error {
	s.asked++
	return s.err
}

func TestBreaker(t *testing.T) {
	captureWarnings(t)
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	synctest.Test(t, func(t *testing.T) { // the breaker's clock moves by sleeping, at once
		redisStub := &scriptedStore{err: refused}
		s := newGuardedStore(redisStub)
		calls := map[string]func() error{
			"admit":    func() error { _, err := s.admit(t.Context(), "", nil, nil); return err },
			"peek":     func() error { _, err := s.peek(t.Context(), nil, nil); return err },
			"giveBack": func() error { return s.giveBack(t.Context(), "", nil, nil) },
			"reset":    func() error { return s.reset(t.Context(), nil) },
		}
		for range failuresToOpen {
			require.ErrorIs(t, calls["admit"](), refused)
		}
		for name, call := range calls {
			require.ErrorIs(t, call(), ErrUnavailable, name)
		}
		require.Equal(t, failuresToOpen, redisStub.asked, "an open breaker does not ask")

		time.Sleep(probeInterval)
		synctest.Wait()
		require.ErrorIs(t, calls["peek"](), ErrUnavailable, "open until the interval is over")
		time.Sleep(time.Millisecond)
		require.ErrorIs(t, calls["peek"](), refused, "one call asks")
		require.ErrorIs(t, calls["peek"](), ErrUnavailable, "and opens it again")

		redisStub.err = nil
		time.Sleep(probeInterval + time.Millisecond)
		require.NoError(t, calls["admit"](), "Redis is back")
		for name, call := range calls {
			require.NoError(t, call(), name)
		}
	})
}

// Only calls that fail in a row, with no success between, open the breaker.
func TestBreakerForgetsFailuresAtASuccess(t *testing.T) {
	captureWarnings(t)
	stub := &scriptedStore{}
	s := newGuardedStore(stub)
	for range 3 {
		stub.err = errors.New("refused")
		for range failuresToOpen - 1 {
			require.ErrorIs(t, s.reset(t.Context(), nil), stub.err)
		}
		stub.err = nil
		require.NoError(t, s.reset(t.Context(), nil))
		require.False(t, s.counting.Load(), "and its lock is left alone again")
	}
}

// So it is with calls that are under way at once, and began before anything had failed.
func TestBreakerForgetsFailuresAtAConcurrentSuccess(t *testing.T) {
	captureWarnings(t)
	synctest.Test(t, func(t *testing.T) {
		s := newGuardedStore(&scriptedStore{})
		refused := errors.New("refused")
		var ends []chan error
		for range 2*failuresToOpen - 1 {
			end := make(chan error)
			ends = append(ends, end)
			go func() {
				_, _ = guarded(t.Context(), s, func() ([]luascripts.Reply, error) { return nil, <-end })
			}()
		}
		synctest.Wait()
		for i, end := range ends {
			if i%2 == 0 {
				end <- refused
			} else {
				end <- nil
			}
			synctest.Wait()
		}
		require.NoError(t, s.reset(t.Context(), nil))
	})
}

// Calls that began before an outage, and fail when it may be over, take no probe and do not open the
// breaker again.
func TestBreakerIgnoresFailuresOfLongAgo(t *testing.T) {
	captureWarnings(t)
	for name, beforeTheProbe := range map[string]bool{"before the probe": true, "after it": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stub := &scriptedStore{}
				s := newGuardedStore(stub)
				refused, fail := errors.New("refused"), make(chan struct{})
				for range 2 * failuresToOpen {
					go func() {
						_, _ = guarded(t.Context(), s, func() ([]luascripts.Reply, error) { <-fail; return nil, refused })
					}()
				}
				synctest.Wait()
				stub.err = refused
				for range failuresToOpen {
					require.ErrorIs(t, s.reset(t.Context(), nil), refused)
				}
				require.ErrorIs(t, s.reset(t.Context(), nil), ErrUnavailable)
				stub.err = nil
				time.Sleep(probeInterval + time.Millisecond)
				if beforeTheProbe {
					close(fail)
					synctest.Wait()
				}
				require.NoError(t, s.reset(t.Context(), nil))
				if !beforeTheProbe {
					close(fail)
					synctest.Wait()
				}
				require.NoError(t, s.reset(t.Context(), nil))
			})
		})
	}
}

// One connection hangs, with all calls that share it, while Redis answers others that began later.
func TestBreakerIgnoresAConnectionThatHangs(t *testing.T) {
	captureWarnings(t)
	synctest.Test(t, func(t *testing.T) {
		s := newGuardedStore(&scriptedStore{})
		timeout := make(chan struct{})
		for range 2 * failuresToOpen {
			go func() {
				_, _ = guarded(t.Context(), s, func() ([]luascripts.Reply, error) {
					<-timeout
					return nil, context.DeadlineExceeded
				})
			}()
		}
		time.Sleep(2 * time.Millisecond)
		require.NoError(t, s.reset(t.Context(), nil))
		close(timeout)
		synctest.Wait()
		require.False(t, s.counting.Load())
		require.NoError(t, s.reset(t.Context(), nil))
	})
}

// A call that began before an outage, and succeeds in it, does not end it.
func TestBreakerIgnoresASuccessOfLongAgo(t *testing.T) {
	captureWarnings(t)
	synctest.Test(t, func(t *testing.T) {
		stub := &scriptedStore{err: errors.New("refused")}
		s := newGuardedStore(stub)
		require.Error(t, s.reset(t.Context(), nil))
		succeed := make(chan struct{})
		go func() {
			_, _ = guarded(t.Context(), s, func() ([]luascripts.Reply, error) { <-succeed; return nil, nil })
		}()
		synctest.Wait()
		for range failuresToOpen - 1 {
			require.ErrorIs(t, s.reset(t.Context(), nil), stub.err)
		}
		close(succeed)
		synctest.Wait()
		require.ErrorIs(t, s.reset(t.Context(), nil), ErrUnavailable)
	})
}

// Whoever fails while another call succeeds, the breaker is asked as long as it has failures to count.
func TestBreakerIsAskedWhileItCounts(t *testing.T) {
	captureWarnings(t)
	refused := errors.New("refused")
	s := newGuardedStore(nil)
	s.report(refused)
	s.setCounting(nil) // of a success that the breaker heard of before
	require.True(t, s.counting.Load())

	for range 2_000 {
		s := newGuardedStore(nil)
		s.report(refused)
		var wg sync.WaitGroup
		for _, err := range []error{refused, nil} {
			wg.Go(func() {
				_, _ = guarded(t.Context(), s, func() ([]luascripts.Reply, error) { return nil, err })
			})
		}
		wg.Go(func() { s.report(refused) })
		wg.Wait()
		counted := s.breaker.Counts().ConsecutiveFailures > 0
		require.True(t, s.counting.Load() || !counted)
	}
}

// A panic below the breaker, in a clock or a Scripter of the user's, must not leave it waiting for
// the probe's end.
func TestBreakerSurvivesAPanic(t *testing.T) {
	captureWarnings(t)
	synctest.Test(t, func(t *testing.T) {
		stub := &scriptedStore{err: errors.New("refused")}
		s := newGuardedStore(stub)
		for range failuresToOpen {
			_ = s.reset(t.Context(), nil)
		}
		time.Sleep(probeInterval + time.Millisecond)
		require.Panics(t, func() { _, _ = guarded(t.Context(), s, func() ([]luascripts.Reply, error) { panic("clock") }) })
		stub.err = nil
		require.NoError(t, s.reset(t.Context(), nil))
	})
}

// An outage is told once, however long it lasts, and so is its end.
func TestBreakerTellsOnce(t *testing.T) {
	logs := captureLogs(t)
	synctest.Test(t, func(t *testing.T) {
		stub := &scriptedStore{err: errors.New("refused")}
		s := newGuardedStore(stub)
		for range 20 {
			_ = s.reset(t.Context(), nil)
			time.Sleep(probeInterval / 2)
		}
		require.Equal(t, 1, strings.Count(logs(), "does not answer"))
		stub.err = nil
		for range 5 {
			_ = s.reset(t.Context(), nil)
			time.Sleep(probeInterval)
		}
		require.Equal(t, 1, strings.Count(logs(), "answers again"))
	})
}

// redisAnswer is an error that the server sent.
func redisAnswer(t *testing.T, script string) error {
	t.Helper()
	err := redistest.Client(t).Eval(t.Context(), script, nil).Err()
	require.Error(t, err)
	return fmt.Errorf("wrapped: %w", err)
}

func TestOutage(t *testing.T) {
	impatient := context.WithValue(t.Context(), impatientKey{}, true)
	answer := func(message string) error {
		return redisAnswer(t, fmt.Sprintf("return redis.error_reply('%s')", message))
	}
	timeout := &net.OpError{Op: "read", Err: context.DeadlineExceeded}
	for _, tt := range []struct {
		name string
		ctx  context.Context
		err  error
		want string // "", "outage" or "excluded"
	}{
		{"an answer", t.Context(), nil, ""},
		{"a refused connection", t.Context(), &net.OpError{Op: "dial", Err: errors.New("refused")}, "outage"},
		{"a timeout", t.Context(), timeout, "outage"},
		{"a full pool", t.Context(), redis.ErrPoolTimeout, "outage"},
		{"a reply that is no decision", t.Context(), errors.New("luascripts: reply is string"), "outage"},
		{"a client that left", t.Context(), fmt.Errorf("read: %w", context.Canceled), "excluded"},
		{"a caller that did not wait", impatient, timeout, "excluded"},
		{"a refused connection of one that did not wait", impatient, &net.OpError{Op: "dial", Err: errors.New("refused")}, "outage"},
		{"a key of another type", t.Context(), answer("WRONGTYPE Operation against a key"), ""},
		{"no permission", t.Context(), answer("NOPERM this user has no permissions"), ""},
		{"memory full", t.Context(), answer("OOM command not allowed"), ""},
		{"loading", t.Context(), answer("LOADING Redis is loading"), "outage"},
		{"a replica", t.Context(), answer("READONLY You can not write"), "outage"},
		{"a cluster without a master", t.Context(), answer("CLUSTERDOWN The cluster is down"), "outage"},
		{"a replica that lost its master", t.Context(), answer("MASTERDOWN Link with MASTER is down"), "outage"},
	} {
		got := outage(tt.ctx, tt.err)
		switch tt.want {
		case "":
			require.NoError(t, got, tt.name)
		case "excluded":
			require.Equal(t, errNoVerdict, got, tt.name)
		default:
			require.Equal(t, tt.err, got, tt.name)
		}
	}
}

func TestHeedsDeadlines(t *testing.T) {
	patient := &redis.Options{ContextTimeoutEnabled: true}
	type wrapped struct{ *redis.Client }
	type opaque struct{ redis.Scripter }
	piped, err := redis.NewClient(patient).AutoPipeline()
	require.NoError(t, err)
	t.Cleanup(func() { _ = piped.Close() })
	for _, tt := range []struct {
		name         string
		rdb          redis.Scripter
		want         bool
		wantWarnings int
	}{
		{"a client that does", redis.NewClient(patient), true, 0},
		{"the default client", redis.NewClient(&redis.Options{}), false, 1},
		{"a Cluster client that does", redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"x:1"}, ContextTimeoutEnabled: true}), true, 0},
		{"the default Cluster client", redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"x:1"}}), false, 1},
		{"the default Ring", redis.NewRing(&redis.RingOptions{}), false, 1},
		{"a wrapper that shows its client", wrapped{redis.NewClient(patient)}, true, 0},
		{"a wrapper that does not", opaque{redis.NewClient(patient)}, false, 0},
		{"an AutoPipeliner", piped, false, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			warnings := captureWarnings(t)
			require.True(t, NewLimiter(tt.rdb, WithTimeout(time.Second)).heedsDeadlines, "WithTimeout sees to it")
			require.Zero(t, warnings())
			require.Equal(t, tt.want, NewLimiter(tt.rdb).heedsDeadlines)
			require.Equal(t, tt.wantWarnings, warnings())
		})
	}
}

// A panic of a user's Scripter or clock is the request's, where Gin recovers it, and not the process's.
func TestAPanicWithinABoundIsTheCallers(t *testing.T) {
	type opaque struct{ redis.Scripter }
	l := NewLimiter(opaque{}, WithTimeout(time.Minute), WithClock(func() time.Time { panic("clock") }))
	require.PanicsWithValue(t, "clock", func() { _, _ = l.Check(t.Context(), "alice", 1, time.Minute) })

	l = NewLimiter(opaque{}, WithTimeout(time.Minute), WithClock(func() time.Time { runtime.Goexit(); return time.Time{} }))
	_, err := l.Check(t.Context(), "alice", 1, time.Minute)
	require.ErrorIs(t, err, errNoReturn)
}

func TestBoundedKeepsTheEarlierDeadline(t *testing.T) {
	l := &Limiter{heedsDeadlines: true, timeout: time.Minute}
	until := l.deadline()
	ctx, cancel := l.bounded(t.Context(), until)
	defer cancel()
	deadline, ok := ctx.Deadline()
	require.True(t, ok)
	require.Equal(t, until, deadline)
	require.Nil(t, ctx.Value(impatientKey{}))

	caller, cancelCaller := context.WithTimeout(t.Context(), time.Second)
	defer cancelCaller()
	ctx, cancel = l.bounded(caller, until)
	defer cancel()
	deadline, _ = ctx.Deadline()
	require.True(t, deadline.Before(until))
	require.NotNil(t, ctx.Value(impatientKey{}))
}

func TestReplicasShareTheLimit(t *testing.T) {
	for _, tt := range []struct{ limit, replicas, want int }{
		{10, 4, 2}, {8, 4, 2}, {3, 4, 1}, {1, 4, 1}, {0, 4, 0}, {-1, 4, -1}, {10, 1, 10},
	} {
		l := NewMemoryLimiter(WithReplicas(tt.replicas))
		admitted := 0
		for range 20 {
			d, err := l.Check(t.Context(), "alice", tt.limit, time.Minute)
			require.NoError(t, err)
			require.Equal(t, tt.want, d.Limit)
			if d.Allowed {
				admitted++
			}
		}
		require.Equal(t, max(0, tt.want), admitted, "limit %d over %d replicas", tt.limit, tt.replicas)
	}
	require.Panics(t, func() { WithReplicas(0) })
	require.Panics(t, func() { WithTimeout(0) })
	require.Panics(t, func() { NewLimiter(redis.NewClient(&redis.Options{}), WithReplicas(2)) })
}
