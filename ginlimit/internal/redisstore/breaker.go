package redisstore

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
)

const (
	// failuresToOpen failures in a row open a breaker, if Redis has answered no call that began later.
	failuresToOpen = 5
	// probeInterval is how often an open breaker lets a call through. A connection pool that has given up
	// needs up to a second more to notice that Redis is back.
	probeInterval = 250 * time.Millisecond
	// telling is how long a call must have waited before its time-out counts as a failure of Redis. With a
	// shorter wait a slow network would look like an outage.
	telling = 20 * time.Millisecond
)

// ErrUnavailable is the error of a call that was not sent to Redis, because the breaker is open.
var ErrUnavailable = errors.New("ginlimit: Redis does not answer and was not asked")

// breakers calls Redis while it answers, and fails at once while it does not. There is one breaker for each
// node, so that an outage of one does not affect the users on others.
type breakers struct {
	next  runner
	nodes func(ctx context.Context, key string) (string, error) // nil: there is one node
	all   *breaker                                              // for the one node, or for the look-up of nodes
	each  sync.Map                                              // from a node's address to its *breaker
}

func newBreakers(next runner, nodes func(context.Context, string) (string, error)) *breakers {
	return &breakers{next: next, nodes: nodes, all: newBreaker("")}
}

func (b *breakers) run(ctx context.Context, script *redis.Script, keys []string, args []any) (any, error) {
	breaker := b.all
	if b.nodes != nil {
		node, err := guarded(b.all, func() (string, error) { return b.nodes(ctx, keys[0]) })
		if err != nil {
			return nil, err
		}
		breaker = b.of(node)
		return guarded(breaker, func() (any, error) {
			reply, err := b.next.run(ctx, script, keys, args)
			if err != nil && !b.settled(ctx, keys[0], node) {
				err = homelessError{err}
			}
			return reply, err
		})
	}
	return guarded(breaker, func() (any, error) { return b.next.run(ctx, script, keys, args) })
}

// settled reports whether a key has a node. While no master serves a key's slot, a Cluster's client names a
// random node at each call. With two nodes it names the same one eight more times in 1 of 256 cases.
func (b *breakers) settled(ctx context.Context, key, node string) bool {
	ctx = context.WithoutCancel(ctx)
	for range 8 {
		if now, err := b.nodes(ctx, key); err == nil && now != node {
			return false
		}
	}
	return true
}

// homelessError is the error of a call on a key whose node is not known. It concerns that key's slot only.
type homelessError struct{ error }

func (e homelessError) Unwrap() error { return e.error }

func (b *breakers) of(node string) *breaker {
	if found, ok := b.each.Load(node); ok {
		return found.(*breaker)
	}
	found, _ := b.each.LoadOrStore(node, newBreaker(node))
	return found.(*breaker)
}

// breaker is the circuit breaker of one node.
//
//	| state      | counting | a call is                      | goes on to                                    |
//	|------------|----------|--------------------------------|-----------------------------------------------|
//	| quiet      | false    | made, and reported if it fails | suspicious, after a failure                   |
//	| suspicious | true     | made and reported              | quiet after an answer; open at failuresToOpen |
//	| open       | true     | refused with ErrUnavailable    | probing, after probeInterval                  |
//	| probing    | true     | made if first, else refused    | quiet after an answer; open after a failure   |
//
// In the quiet state nobody waits for a lock.
type breaker struct {
	states   *gobreaker.TwoStepCircuitBreaker[any]
	counting atomic.Bool
	start    time.Time
	answered atomic.Int64 // when the latest answered call began, in ms since start
}

func newBreaker(node string) *breaker {
	b := &breaker{start: time.Now()}
	log := slog.Default
	if node != "" {
		log = func() *slog.Logger { return slog.With("node", node) }
	}
	b.states = gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{
		Timeout:     probeInterval,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= failuresToOpen },
		IsExcluded:  func(err error) bool { return err == errNothing },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			switch {
			case from == gobreaker.StateClosed: // not at each probe that fails
				log().Error("ginlimit: Redis does not answer; it is not asked, but for probes, until it does",
					"probe_interval", probeInterval)
			case to == gobreaker.StateClosed:
				log().Info("ginlimit: Redis answers again")
			}
		},
	})
	return b
}

// guarded makes a call as b's state says.
func guarded[T any](b *breaker, call func() (T, error)) (reply T, err error) {
	began := time.Since(b.start)
	if !b.counting.Load() {
		reply, err = call()
		verdict := b.judge(err, began)
		if verdict != nil || b.counting.Load() { // an answer ends a row of failures
			b.report(verdict)
		}
		return reply, err
	}
	done, err := b.states.Allow()
	if err != nil {
		return reply, ErrUnavailable
	}
	verdict := errNothing // a panic says nothing about Redis, and must not leave the breaker waiting
	defer func() {
		done(verdict)
		b.setCounting(verdict)
	}()
	reply, err = call()
	verdict = b.judge(err, began)
	return reply, err
}

// judge returns what a call says about Redis: nil if it answers, err if it is out of order, errNothing if the
// call says nothing. A failure says nothing if Redis has answered a call that began later: one connection
// hangs, or the outage is over. A failure that a group shares counts once.
func (b *breaker) judge(err error, began time.Duration) error {
	var verdict error
	if err != nil {
		verdict = outage(err, time.Since(b.start)-began)
	}
	at, answered := began.Milliseconds(), b.answered.Load()
	switch {
	case verdict == nil && answered < at:
		b.answered.Store(at) // at most about once a millisecond
	case verdict != nil && answered > at:
		return errNothing
	}
	if verdict != nil && verdict != errNothing {
		if shared, ok := errors.AsType[*groupError](verdict); ok && shared.counted.Swap(true) {
			return errNothing
		}
	}
	return verdict
}

// report reports a call to a closed breaker that did not have to allow it. For any other state the report
// would be too old.
func (b *breaker) report(verdict error) {
	if b.states.State() == gobreaker.StateClosed {
		if done, err := b.states.Allow(); err == nil {
			done(verdict)
		}
	}
	b.setCounting(verdict)
}

// setCounting comes after a report. After a failure it sets counting. Before it leaves counting cleared, it
// checks the breaker again, so that no counted failure is missed.
func (b *breaker) setCounting(verdict error) {
	switch verdict {
	case errNothing:
	case nil:
		b.counting.Store(false)
		if b.states.State() != gobreaker.StateClosed || b.states.Counts().ConsecutiveFailures > 0 {
			b.counting.Store(true)
		}
	default:
		b.counting.Store(true)
	}
}

// errNothing means that a call says nothing about Redis.
var errNothing = errors.New("the call says nothing of Redis")

// outage returns err if it says that a node is out of order for everybody. It returns errNothing if the
// caller left or did not wait long enough, or if the key has no node. It returns nil if the node has
// answered, even with an error: a key of the wrong type concerns one user only, a moving slot one slot only.
func outage(err error, waited time.Duration) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), isTimeout(err) && waited < telling, isHomeless(err):
		return errNothing
	case !isAnswer(err),
		redis.IsLoadingError(err), redis.IsReadOnlyError(err), redis.IsMasterDownError(err),
		redis.IsMaxClientsError(err),
		redis.IsClusterDownError(err) && !redis.HasErrorPrefix(unwrapped(err), "CLUSTERDOWN Hash slot not served"):
		return err
	}
	return nil
}

func isHomeless(err error) bool {
	_, homeless := errors.AsType[homelessError](err)
	return homeless
}

// unwrapped is the answer of the server inside err.
func unwrapped(err error) error {
	answer, _ := errors.AsType[redis.Error](err)
	return answer
}

func isAnswer(err error) bool { return unwrapped(err) != nil }

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}
