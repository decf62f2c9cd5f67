package redisstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
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

// stubRunner answers what a test says: for outages that no server can be made to have at will.
type stubRunner struct {
	err   error
	asked int
}

func (r *stubRunner) run(context.Context, *redis.Script, []string, []any) (any, error) {
	r.asked++
	return nil, r.err
}

func ask(t *testing.T, r runner) error {
	_, err := r.run(t.Context(), luascripts.ResetScript, []string{"key"}, nil)
	return err
}

// logsOf sends slog to a buffer for the test, and returns its text.
func logsOf(t *testing.T) func() string {
	t.Helper()
	buf := &lockedBuffer{}
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(buf, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return func() string {
		buf.mu.Lock()
		defer buf.mu.Unlock()
		return buf.buf.String()
	}
}

func quiet(t *testing.T) { logsOf(t) }

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func TestBreaker(t *testing.T) {
	quiet(t)
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	synctest.Test(t, func(t *testing.T) { // the breaker's clock moves by sleeping, at once
		redisStub := &stubRunner{err: refused}
		s := newBreakers(redisStub, nil)
		for range failuresToOpen {
			require.ErrorIs(t, ask(t, s), refused)
		}
		require.ErrorIs(t, ask(t, s), ErrUnavailable)
		require.Equal(t, failuresToOpen, redisStub.asked, "an open breaker does not ask")

		time.Sleep(probeInterval)
		synctest.Wait()
		require.ErrorIs(t, ask(t, s), ErrUnavailable, "open until the interval is over")
		time.Sleep(time.Millisecond)
		require.ErrorIs(t, ask(t, s), refused, "one call asks")
		require.ErrorIs(t, ask(t, s), ErrUnavailable, "and opens it again")

		redisStub.err = nil
		time.Sleep(probeInterval + time.Millisecond)
		require.NoError(t, ask(t, s), "Redis is back")
		require.NoError(t, ask(t, s))
	})
}

// Only calls that fail in a row, with no success between, open the breaker.
func TestBreakerForgetsFailuresAtASuccess(t *testing.T) {
	quiet(t)
	stub := &stubRunner{}
	s := newBreakers(stub, nil)
	for range 3 {
		stub.err = errors.New("refused")
		for range failuresToOpen - 1 {
			require.ErrorIs(t, ask(t, s), stub.err)
		}
		stub.err = nil
		require.NoError(t, ask(t, s))
		require.False(t, s.all.counting.Load(), "and its lock is left alone again")
	}
}

// So it is with calls that run at once, and began before anything had failed.
func TestBreakerForgetsFailuresAtAConcurrentSuccess(t *testing.T) {
	quiet(t)
	synctest.Test(t, func(t *testing.T) {
		s := newBreakers(&stubRunner{}, nil)
		refused := errors.New("refused")
		var ends []chan error
		for range 2*failuresToOpen - 1 {
			end := make(chan error)
			ends = append(ends, end)
			go func() {
				_, _ = guarded(s.all, func() (any, error) { return nil, <-end })
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
		require.NoError(t, ask(t, s))
	})
}

// Calls that began before an outage, and fail when it may be over, take no probe and do not open the
// breaker again.
func TestBreakerIgnoresFailuresOfLongAgo(t *testing.T) {
	quiet(t)
	for name, beforeTheProbe := range map[string]bool{"before the probe": true, "after it": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stub := &stubRunner{}
				s := newBreakers(stub, nil)
				refused, fail := errors.New("refused"), make(chan struct{})
				for range 2 * failuresToOpen {
					go func() {
						_, _ = guarded(s.all, func() (any, error) { <-fail; return nil, refused })
					}()
				}
				synctest.Wait()
				stub.err = refused
				for range failuresToOpen {
					require.ErrorIs(t, ask(t, s), refused)
				}
				require.ErrorIs(t, ask(t, s), ErrUnavailable)
				stub.err = nil
				time.Sleep(probeInterval + time.Millisecond)
				if beforeTheProbe {
					close(fail)
					synctest.Wait()
				}
				require.NoError(t, ask(t, s))
				if !beforeTheProbe {
					close(fail)
					synctest.Wait()
				}
				require.NoError(t, ask(t, s))
			})
		})
	}
}

// One connection hangs, with all calls that share it, while Redis answers others that began later.
func TestBreakerIgnoresAConnectionThatHangs(t *testing.T) {
	quiet(t)
	synctest.Test(t, func(t *testing.T) {
		s := newBreakers(&stubRunner{}, nil)
		timeout := make(chan struct{})
		for range 2 * failuresToOpen {
			go func() {
				_, _ = guarded(s.all, func() (any, error) {
					<-timeout
					return nil, context.DeadlineExceeded
				})
			}()
		}
		time.Sleep(2 * telling)
		require.NoError(t, ask(t, s))
		close(timeout)
		synctest.Wait()
		require.False(t, s.all.counting.Load())
		require.NoError(t, ask(t, s))
	})
}

// A call that began before an outage, and succeeds in it, does not end it.
func TestBreakerIgnoresASuccessOfLongAgo(t *testing.T) {
	quiet(t)
	synctest.Test(t, func(t *testing.T) {
		stub := &stubRunner{err: errors.New("refused")}
		s := newBreakers(stub, nil)
		require.Error(t, ask(t, s))
		succeed := make(chan struct{})
		go func() {
			_, _ = guarded(s.all, func() (any, error) { <-succeed; return nil, nil })
		}()
		synctest.Wait()
		for range failuresToOpen - 1 {
			require.ErrorIs(t, ask(t, s), stub.err)
		}
		close(succeed)
		synctest.Wait()
		require.ErrorIs(t, ask(t, s), ErrUnavailable)
	})
}

// Whoever fails while another call succeeds, the breaker is asked as long as it has failures to count.
func TestBreakerIsAskedWhileItCounts(t *testing.T) {
	quiet(t)
	refused := errors.New("refused")
	s := newBreakers(nil, nil)
	s.all.report(refused)
	s.all.setCounting(nil) // of a success that the breaker heard of before
	require.True(t, s.all.counting.Load())

	for range 2_000 {
		s := newBreakers(nil, nil)
		s.all.report(refused)
		var wg sync.WaitGroup
		for _, err := range []error{refused, nil} {
			wg.Go(func() {
				_, _ = guarded(s.all, func() (any, error) { return nil, err })
			})
		}
		wg.Go(func() { s.all.report(refused) })
		wg.Wait()
		counted := s.all.states.Counts().ConsecutiveFailures > 0
		require.True(t, s.all.counting.Load() || !counted)
	}
}

// A panic below the breaker, in a clock or a Scripter of the user's, must not leave it waiting for
// the probe's end.
func TestBreakerSurvivesAPanic(t *testing.T) {
	quiet(t)
	synctest.Test(t, func(t *testing.T) {
		stub := &stubRunner{err: errors.New("refused")}
		s := newBreakers(stub, nil)
		for range failuresToOpen {
			_ = ask(t, s)
		}
		time.Sleep(probeInterval + time.Millisecond)
		require.Panics(t, func() { _, _ = guarded(s.all, func() (any, error) { panic("clock") }) })
		stub.err = nil
		require.NoError(t, ask(t, s))
	})
}

// An outage is told once, however long it lasts, and so is its end.
func TestBreakerTellsOnce(t *testing.T) {
	logs := logsOf(t)
	synctest.Test(t, func(t *testing.T) {
		stub := &stubRunner{err: errors.New("refused")}
		s := newBreakers(stub, nil)
		for range 20 {
			_ = ask(t, s)
			time.Sleep(probeInterval / 2)
		}
		require.Equal(t, 1, strings.Count(logs(), "does not answer"))
		stub.err = nil
		for range 5 {
			_ = ask(t, s)
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
	answer := func(message string) error {
		return redisAnswer(t, fmt.Sprintf("return redis.error_reply('%s')", message))
	}
	timeout := &net.OpError{Op: "read", Err: context.DeadlineExceeded}
	for _, tt := range []struct {
		name   string
		waited time.Duration
		err    error
		want   string // "", "outage" or "excluded"
	}{
		{"an answer", 0, nil, ""},
		{"a refused connection", time.Second, &net.OpError{Op: "dial", Err: errors.New("refused")}, "outage"},
		{"a timeout", time.Second, timeout, "outage"},
		{"a full pool", time.Second, redis.ErrPoolTimeout, "outage"},
		{"a reply that is no decision", time.Second, errors.New("reply is string"), "outage"},
		{"a client that left", time.Second, fmt.Errorf("read: %w", context.Canceled), "excluded"},
		{"a caller that did not wait", telling - 1, timeout, "excluded"},
		{"a refused connection of one that did not wait", telling - 1,
			&net.OpError{Op: "dial", Err: errors.New("refused")}, "outage"},
		{"a key of another type", time.Second, answer("WRONGTYPE Operation against a key"), ""},
		{"no permission", time.Second, answer("NOPERM this user has no permissions"), ""},
		{"memory full", time.Second, answer("OOM command not allowed"), ""},
		{"loading", time.Second, answer("LOADING Redis is loading"), "outage"},
		{"a replica", time.Second, answer("READONLY You can not write"), "outage"},
		{"a cluster without a master", time.Second, answer("CLUSTERDOWN The cluster is down"), "outage"},
		{"a slot without a master", time.Second, answer("CLUSTERDOWN Hash slot not served"), ""},
		{"a slot on the move", time.Second, answer("TRYAGAIN Multiple keys request during rehashing of slot"), ""},
		{"a time-out that was just waited for", telling, timeout, "outage"},
		{"a replica that lost its master", time.Second, answer("MASTERDOWN Link with MASTER is down"), "outage"},
	} {
		got := outage(tt.err, tt.waited)
		switch tt.want {
		case "":
			require.NoError(t, got, tt.name)
		case "excluded":
			require.Equal(t, errNothing, got, tt.name)
		default:
			require.Equal(t, tt.err, got, tt.name)
		}
	}
}

// An outage of one node is that node's: calls on the others are made. R37.
func TestEachNodeHasABreaker(t *testing.T) {
	logs := logsOf(t)
	refused := errors.New("refused")
	stub := &stubRunner{}
	var nodesErr error
	s := newBreakers(stub, func(_ context.Context, key string) (string, error) { return key, nodesErr })
	run := func(node string) error {
		_, err := s.run(t.Context(), luascripts.ResetScript, []string{node}, nil)
		return err
	}
	stub.err = refused
	for range failuresToOpen {
		require.ErrorIs(t, run("a"), refused)
	}
	require.ErrorIs(t, run("a"), ErrUnavailable)
	stub.err = nil
	require.NoError(t, run("b"))
	require.Contains(t, logs(), "node=a")

	nodesErr = errors.New("no node answers")
	for range failuresToOpen {
		require.ErrorIs(t, run("b"), nodesErr)
	}
	require.ErrorIs(t, run("b"), ErrUnavailable, "nobody knows where keys are")
}

// A Cluster's client names a node by chance for a slot that no master serves. What it waits for there is no
// outage of that node. R37.
func TestASlotWithoutANodeBlamesNone(t *testing.T) {
	quiet(t)
	stub, asked := &stubRunner{}, 0
	s := newBreakers(stub, func(_ context.Context, key string) (string, error) {
		if key == "homeless" {
			asked++
			return []string{"a", "b"}[asked/3%2], nil
		}
		return key, nil
	})
	run := func(key string) error {
		_, err := s.run(t.Context(), luascripts.ResetScript, []string{key}, nil)
		return err
	}
	stub.err = errors.New("refused")
	for range 10 * failuresToOpen {
		require.ErrorIs(t, run("homeless"), stub.err)
	}
	stub.err = nil
	require.NoError(t, run("a"))
	require.NoError(t, run("b"))
}
