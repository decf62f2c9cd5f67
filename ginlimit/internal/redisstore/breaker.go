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
	// failuresToOpen calls in a row that Redis could not answer, while it answered none that began later,
	// open a breaker.
	failuresToOpen = 5
	// probeInterval is how often an open breaker lets a call through. A connection pool that has given up
	// needs up to a second more to notice that Redis is back.
	probeInterval = 250 * time.Millisecond
	// telling is how long a call must have waited for its time-out to say something of Redis. A caller
	// with less patience would call a slow network an outage.
	telling = 20 * time.Millisecond
)

// ErrUnavailable is the error of a call for which Redis was not asked, since the breaker is open.
var ErrUnavailable = errors.New("ginlimit: Redis does not answer and was not asked")

// breakers asks Redis while it answers, and fails at once while it does not: one breaker for each node,
// so that an outage of one leaves the users on others alone.
type breakers struct {
	next  runner
	nodes func(ctx context.Context, key string) (string, error) // nil: there is one node
	all   *breaker                                              // of the one node, or of the look-up of nodes
	each  sync.Map                                              // of a node's address to its *breaker
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

// settled tells whether a key has a node of its own. While no master serves a key's slot, a Cluster's client
// names a node by chance, each time it is asked: of two nodes the same one eight times more in 1 of 256.
func (b *breakers) settled(ctx context.Context, key, node string) bool {
	ctx = context.WithoutCancel(ctx)
	for range 8 {
		if now, err := b.nodes(ctx, key); err == nil && now != node {
			return false
		}
	}
	return true
}

// homelessError is that of a call on a key whose node is not known. It is the trouble of that key's slot.
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
//	| state      | counting | a call is                      | goes on to                                   |
//	|------------|----------|--------------------------------|----------------------------------------------|
//	| quiet      | false    | made, and reported if it fails | suspicious, at a failure                     |
//	| suspicious | true     | made and reported              | quiet, at an answer; open, at failuresToOpen |
//	| open       | true     | refused with ErrUnavailable    | probing, after probeInterval                 |
//	| probing    | true     | made if first, else refused    | quiet, at an answer; open, at a failure      |
//
// In the quiet state nobody waits for a lock.
type breaker struct {
	states   *gobreaker.TwoStepCircuitBreaker[any]
	counting atomic.Bool
	start    time.Time
	answered atomic.Int64 // when the latest call that Redis has answered began, in ms since start
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
		if verdict != nil || b.counting.Load() { // an answer among failures ends their row
			b.report(verdict)
		}
		return reply, err
	}
	done, err := b.states.Allow()
	if err != nil {
		return reply, ErrUnavailable
	}
	verdict := errNothing // a panic says nothing of Redis, and must not leave the breaker waiting
	defer func() {
		done(verdict)
		b.setCounting(verdict)
	}()
	reply, err = call()
	verdict = b.judge(err, began)
	return reply, err
}

// judge returns what a call says of Redis: nil that it answers, err that it is out of order, errNothing
// where it says nothing. A failure says nothing when Redis has answered a call that began later: one
// connection hangs, or the outage is over. What a group shares is one failure.
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

// report tells a closed breaker of a call about which it was not asked. To any other state it would be
// news of before.
func (b *breaker) report(verdict error) {
	if b.states.State() == gobreaker.StateClosed {
		if done, err := b.states.Allow(); err == nil {
			done(verdict)
		}
	}
	b.setCounting(verdict)
}

// setCounting follows a report. Whoever reports a failure sets counting after it; whoever clears it looks
// at the breaker again, so no failure that the breaker counts is missed.
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

// errNothing stands for a call that says nothing of Redis.
var errNothing = errors.New("the call says nothing of Redis")

// outage returns err if it says that a node is out of order for everybody, errNothing if its caller left or
// did not wait long enough to tell or if its key has no node, and nil if the node has answered, be it with an
// error: a key of the wrong type is the trouble of one user, a slot on the move that of one slot.
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
