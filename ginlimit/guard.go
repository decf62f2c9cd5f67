package ginlimit

import (
	"context"
	"errors"
	"log/slog"
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
	probeInterval  = 500 * time.Millisecond
)

// guardedStore asks Redis while it answers, and fails at once while it does not.
type guardedStore struct {
	next    store
	breaker *gobreaker.TwoStepCircuitBreaker[any]
}

func newGuardedStore(next store) *guardedStore {
	return &guardedStore{next, gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{
		Timeout:     probeInterval,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= failuresToOpen },
		IsExcluded:  func(err error) bool { return err == errImpatient },
		OnStateChange: func(_ string, _, to gobreaker.State) {
			switch to {
			case gobreaker.StateOpen:
				slog.Error("ginlimit: Redis does not answer; until it does, requests are decided by the failure policy")
			case gobreaker.StateClosed:
				slog.Info("ginlimit: Redis answers again")
			}
		},
	})}
}

func (s *guardedStore) admit(ctx context.Context, member string, keys []string, budgets []luascripts.Budget) ([]luascripts.Reply, error) {
	done, err := s.breaker.Allow()
	if err != nil {
		return nil, err
	}
	replies, err := s.next.admit(ctx, member, keys, budgets)
	done(outage(ctx, err))
	return replies, err
}

func (s *guardedStore) peek(ctx context.Context, keys []string, budgets []luascripts.Budget) ([]luascripts.Reply, error) {
	done, err := s.breaker.Allow()
	if err != nil {
		return nil, err
	}
	replies, err := s.next.peek(ctx, keys, budgets)
	done(outage(ctx, err))
	return replies, err
}

func (s *guardedStore) giveBack(ctx context.Context, member string, keys []string, budgets []luascripts.Budget) error {
	done, err := s.breaker.Allow()
	if err != nil {
		return err
	}
	err = s.next.giveBack(ctx, member, keys, budgets)
	done(outage(ctx, err))
	return err
}

func (s *guardedStore) reset(ctx context.Context, keys []string) error {
	done, err := s.breaker.Allow()
	if err != nil {
		return err
	}
	err = s.next.reset(ctx, keys)
	done(outage(ctx, err))
	return err
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

// DefaultTimeout bounds a decision on Redis, giving back included, unless WithTimeout says otherwise.
const DefaultTimeout = 100 * time.Millisecond

// impatientKey marks the context of a caller whose own deadline is ahead of the limiter's.
type impatientKey struct{}

// bounded returns ctx with the deadline of a decision, where that makes a difference.
func (l *Limiter) bounded(ctx context.Context, until time.Time) (context.Context, context.CancelFunc) {
	if !l.heedsDeadlines {
		return ctx, func() {}
	}
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(until) {
		return context.WithValue(ctx, impatientKey{}, true), func() {}
	}
	return context.WithDeadline(ctx, until)
}

// heedsDeadlines tells whether a client ends a call at its context's deadline. Where it does not,
// one warning names the cause; of a Scripter that is not go-redis's own nothing is known.
func heedsDeadlines(rdb redis.Scripter) bool {
	var heeds bool
	switch c := rdb.(type) {
	case interface{ Options() *redis.Options }:
		heeds = c.Options().ContextTimeoutEnabled
	case interface{ Options() *redis.ClusterOptions }:
		heeds = c.Options().ContextTimeoutEnabled
	case interface{ Options() *redis.RingOptions }:
		heeds = c.Options().ContextTimeoutEnabled
	case *redis.AutoPipeliner:
		slog.Warn("ginlimit: an AutoPipeliner does not end a call at a deadline, so a hung Redis may hold requests for its client's ReadTimeout; see redisclient.AutoPipeline")
		return false
	default:
		return false
	}
	if !heeds {
		slog.Warn("ginlimit: the Redis client has no ContextTimeoutEnabled, so a hung Redis may hold requests for its ReadTimeout and retries; see redisclient.New")
	}
	return heeds
}
