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

// The circuit breaker of a limiter: after failuresToOpen calls in a row that Redis could not answer
// it decides without asking, and lets one call through every probeInterval. A connection pool that
// has given up needs up to a second more to notice that Redis is back.
const (
	failuresToOpen = 5
	probeInterval  = 250 * time.Millisecond
)

// ErrUnavailable is the error of a call for which Redis was not asked, because it has not answered
// the calls before: the circuit breaker is open.
var ErrUnavailable = errors.New("ginlimit: Redis does not answer and was not asked")

// guardedStore asks Redis while it answers, and fails at once while it does not. While every call
// succeeds the breaker has nothing to learn, and nobody waits for its lock.
type guardedStore struct {
	next    store
	breaker *gobreaker.TwoStepCircuitBreaker[any]
	doubted atomic.Bool   // a call has failed, and none that began later has succeeded
	changes atomic.Uint64 // of the breaker's state
}

func newGuardedStore(next store) *guardedStore {
	s := &guardedStore{next: next}
	s.breaker = gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{
		Timeout:     probeInterval,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= failuresToOpen },
		IsExcluded:  func(err error) bool { return err == errImpatient },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			s.changes.Add(1)
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

// guarded makes a call if the breaker lets it, and tells the breaker how it went.
func guarded(ctx context.Context, s *guardedStore, call func() ([]luascripts.Reply, error)) (replies []luascripts.Reply, err error) {
	if !s.doubted.Load() {
		changes := s.changes.Load()
		replies, err = call()
		if verdict := outage(ctx, err); verdict != nil && verdict != errImpatient {
			s.doubt(verdict, changes)
		}
		return replies, err
	}
	done, err := s.breaker.Allow()
	if err != nil {
		return nil, ErrUnavailable
	}
	verdict := errImpatient // a panic tells nothing of Redis, and must not leave the breaker waiting
	defer func() {
		done(verdict)
		s.learn(verdict)
	}()
	replies, err = call()
	verdict = outage(ctx, err)
	return replies, err
}

// doubt tells the breaker of a failure that it was not asked about before, unless its state has
// changed since: then the failure says nothing new.
func (s *guardedStore) doubt(failure error, changes uint64) {
	if s.changes.Load() == changes {
		if done, err := s.breaker.Allow(); err == nil {
			done(failure)
		}
	}
	s.learn(failure)
}

// learn starts or ends the doubt, after the breaker was told. What others tell it meanwhile is
// never missed: they start the doubt after that, and its end looks at the breaker again.
func (s *guardedStore) learn(verdict error) {
	s.doubted.Store(verdict != nil)
	if verdict == nil && (s.breaker.State() != gobreaker.StateClosed || s.breaker.Counts().ConsecutiveFailures > 0) {
		s.doubted.Store(true)
	}
}

// errImpatient stands for a call that tells nothing of Redis: its caller did not wait.
var errImpatient = errors.New("ginlimit: the caller did not wait")

// outage returns err if it says that Redis is out of order for everybody, errImpatient if it says
// nothing of Redis, and nil if Redis has answered, be it with an error: a key of the wrong type is
// the trouble of one user, and an answer costs no waiting.
func outage(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), ctx.Value(impatientKey{}) != nil && isTimeout(err):
		return errImpatient
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
