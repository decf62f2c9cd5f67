package ginlimit

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"

	"github.com/gin-tiers/ratelimit/luascripts"
)

// The circuit breaker of a limiter: after failuresToOpen calls in a row that Redis could not answer,
// while it answered none that began later, it decides without asking, and lets one call through every
// probeInterval. A connection pool that has given up needs up to a second more to notice that Redis
// is back.
const (
	failuresToOpen = 5
	probeInterval  = 250 * time.Millisecond
)

// ErrUnavailable is the error of a call for which Redis was not asked, because it has not answered
// the calls before: the circuit breaker is open.
var ErrUnavailable = errors.New("ginlimit: Redis does not answer and was not asked")

// guardedStore asks Redis while it answers, and fails at once while it does not.
type guardedStore struct {
	next     store
	breaker  *gobreaker.TwoStepCircuitBreaker[any]
	counting atomic.Bool  // the breaker counts failures or is not closed: every call asks it first
	start    time.Time    // of this store
	answered atomic.Int64 // when the latest call that Redis has answered began, in ms since start
}

func newGuardedStore(next store) *guardedStore {
	s := &guardedStore{next: next, start: time.Now()}
	s.breaker = gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{
		Timeout:     probeInterval,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= failuresToOpen },
		IsExcluded:  func(err error) bool { return err == errNoVerdict },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			switch {
			case from == gobreaker.StateClosed: // not at each probe that fails
				slog.Error("ginlimit: Redis does not answer; it is not asked, but for probes, until it does", "probe_interval", probeInterval)
			case to == gobreaker.StateClosed:
				slog.Info("ginlimit: Redis answers again")
			}
		},
	})
	return s
}

func (s *guardedStore) admit(ctx context.Context, member string, keys []string, budgets []luascripts.Budget) ([]luascripts.Reply, error) {
	return guarded(ctx, s, func() ([]luascripts.Reply, error) { return s.next.admit(ctx, member, keys, budgets) })
}

func (s *guardedStore) peek(ctx context.Context, keys []string, budgets []luascripts.Budget) ([]luascripts.Reply, error) {
	return guarded(ctx, s, func() ([]luascripts.Reply, error) { return s.next.peek(ctx, keys, budgets) })
}

func (s *guardedStore) giveBack(ctx context.Context, member string, keys []string, budgets []luascripts.Budget) error {
	_, err := guarded(ctx, s, func() ([]luascripts.Reply, error) { return nil, s.next.giveBack(ctx, member, keys, budgets) })
	return err
}

func (s *guardedStore) reset(ctx context.Context, keys []string) error {
	_, err := guarded(ctx, s, func() ([]luascripts.Reply, error) { return nil, s.next.reset(ctx, keys) })
	return err
}

// guarded makes a call. While the breaker counts, the call needs its leave, and every outcome is
// reported; otherwise only a failure is, and nobody waits for the breaker's lock.
func guarded(ctx context.Context, s *guardedStore, call func() ([]luascripts.Reply, error)) (replies []luascripts.Reply, err error) {
	began := time.Since(s.start).Milliseconds()
	if !s.counting.Load() {
		replies, err = call()
		verdict := s.judge(ctx, err, began)
		if verdict != nil || s.counting.Load() { // a success among failures ends their row
			s.report(verdict)
		}
		return replies, err
	}
	done, err := s.breaker.Allow()
	if err != nil {
		return nil, ErrUnavailable
	}
	verdict := errNoVerdict // a panic tells nothing of Redis, and must not leave the breaker waiting
	defer func() {
		done(verdict)
		s.setCounting(verdict)
	}()
	replies, err = call()
	verdict = s.judge(ctx, err, began)
	return replies, err
}

// judge returns the outage of which err tells. A failure tells of none when Redis has answered a call
// that began later: one connection hangs, with all calls that share it, or the outage is over.
func (s *guardedStore) judge(ctx context.Context, err error, began int64) error {
	verdict, answered := outage(ctx, err), s.answered.Load()
	switch {
	case verdict == nil && answered < began:
		s.answered.Store(began) // at most about once a millisecond
	case verdict != nil && answered > began:
		return errNoVerdict
	}
	return verdict
}

// report tells a closed breaker of a call about which it was not asked. To any other state it would
// be news of before.
func (s *guardedStore) report(verdict error) {
	if s.breaker.State() == gobreaker.StateClosed {
		if done, err := s.breaker.Allow(); err == nil {
			done(verdict)
		}
	}
	s.setCounting(verdict)
}

// setCounting follows a report. Whoever reports a failure sets counting after it; whoever clears it
// looks at the breaker again, so no failure that the breaker counts is missed.
func (s *guardedStore) setCounting(verdict error) {
	switch verdict {
	case errNoVerdict:
	case nil:
		s.counting.Store(false)
		if s.breaker.State() != gobreaker.StateClosed || s.breaker.Counts().ConsecutiveFailures > 0 {
			s.counting.Store(true)
		}
	default:
		s.counting.Store(true)
	}
}

// errNoVerdict stands for a call that tells nothing of Redis.
var errNoVerdict = errors.New("ginlimit: the call tells nothing of Redis")

// outage returns err if it says that Redis is out of order for everybody, errNoVerdict if it says
// nothing of Redis since its caller did not wait, and nil if Redis has answered, be it with an error:
// a key of the wrong type is the trouble of one user, and an answer costs no waiting.
func outage(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), ctx.Value(impatientKey{}) != nil && isTimeout(err):
		return errNoVerdict
	case !isAnswer(err),
		redis.IsLoadingError(err), redis.IsReadOnlyError(err), redis.IsClusterDownError(err),
		redis.IsMasterDownError(err), redis.IsMaxClientsError(err), redis.IsTryAgainError(err):
		return err
	}
	return nil
}

func isAnswer(err error) bool {
	_, ok := errors.AsType[redis.Error](err)
	return ok
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}
