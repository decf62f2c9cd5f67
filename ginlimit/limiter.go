package ginlimit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/gin-tiers/ratelimit/luascripts"
)

// The windows of a tier, shortest first.
const (
	minute = time.Minute
	day    = 24 * time.Hour
)

// Errors of Check, Peek and Reset; match them with errors.Is. Nothing was asked of Redis.
var (
	ErrInvalidWindow = errors.New("ginlimit: window is not a whole number of seconds, at least one")
	ErrInvalidUserID = errors.New("ginlimit: user id is empty")
)

// Limiter counts the requests of users in sliding windows, exactly: of the calls in any half-open
// span (now-window, now] at most limit are admitted, over all processes that share the Redis.
// A rejected call takes nothing and extends nothing.
//
// It is safe for concurrent use. Make one for a process with NewLimiter or NewMemoryLimiter.
type Limiter struct {
	store    store
	local    bool // the store is this process's memory, which never fails
	names    namespace
	replicas int

	timeout        time.Duration
	heedsDeadlines bool

	kill   *killSwitch // shared with all scopes, as the next is
	logged *throttle   // of errors
}

// NewLimiter returns a Limiter that counts in Redis: a *redis.Client, a *redis.ClusterClient, a
// *redis.Ring or anything else that runs scripts. It sends nothing, so Redis may come up later.
// It panics on a nil client.
func NewLimiter(rdb redis.Scripter, opts ...LimiterOption) *Limiter {
	mustNotBeNil("NewLimiter: rdb", rdb)
	c := newLimiterConfig("NewLimiter", opts)
	switch rdb.(type) {
	case interface{ Options() *redis.ClusterOptions }, interface{ Options() *redis.RingOptions }:
		c.hashTags = true
	}
	if c.replicas != 1 {
		panic("ginlimit: NewLimiter: WithReplicas is for a memory limiter; Redis counts for all replicas")
	}
	var s store = &redisStore{rdb: rdb, clock: c.clock}
	heeds, why := heedsDeadlines(rdb)
	switch {
	case heeds:
	case c.timeout > 0:
		s, heeds = &impatientStore{s}, true
	case why != "":
		slog.Warn("ginlimit: a hung Redis may hold requests for its client's ReadTimeout and retries", "cause", why)
	}
	l := newLimiter(newGuardedStore(s), c)
	l.heedsDeadlines = heeds
	return l
}

// NewMemoryLimiter returns a Limiter that counts in this process: the same decisions without
// Redis, for one replica, for tests and for FailLocal. It never waits and never fails, so it does not
// look at contexts. See MemoryKeys and MemoryEntries for its bounds.
func NewMemoryLimiter(opts ...LimiterOption) *Limiter {
	c := newLimiterConfig("NewMemoryLimiter", opts)
	l := newLimiter(newMemoryStore(c.clock), c)
	l.local = true
	return l
}

func newLimiter(s store, c limiterConfig) *Limiter {
	now := c.clock
	if now == nil {
		now = time.Now
	}
	return &Limiter{
		store:    s,
		names:    namespace{hashTags: c.hashTags},
		timeout:  cmp.Or(c.timeout, DefaultTimeout),
		replicas: c.replicas,
		kill:     newKillSwitch(c.killSwitch, now),
		logged:   &throttle{every: time.Second, now: time.Now},
	}
}

// Scope returns a limiter with keys of its own, for a budget per route: the same Redis, clock and
// kill switch. Scope("") is no scope, and a scope of a scope replaces it.
func (l *Limiter) Scope(name string) *Limiter {
	scoped := *l
	scoped.names = l.names.withScope(name)
	return &scoped
}

// SetDisabled turns the kill switch on or off at run time, for all scopes. Turning it off does not
// override RATE_LIMIT_DISABLED or the function of WithKillSwitch: either is enough.
func (l *Limiter) SetDisabled(on bool) { l.kill.set(on) }

// Check decides one request of a user: it is admitted, and counted, if fewer than limit of the
// user's requests were admitted within the last window. A limit of 0 or less rejects, with
// RetryAfter = window. Being rejected is a Decision, not an error.
//
// While the kill switch is on it answers allowed, with all of the limit remaining, for arguments
// that are valid.
//
// The error is ErrInvalidUserID, ErrInvalidWindow, ErrUnavailable, ctx's, or Redis's; the Decision
// is then zero. A call that timed out may still have been counted; go-redis's own retries of it are
// counted once.
//
// One round trip, one script: four Redis commands and the server's TIME; O(log N) for N requests
// in the window.
func (l *Limiter) Check(ctx context.Context, userID string, limit int, window time.Duration) (Decision, error) {
	return l.decide(ctx, "check", userID, limit, window, admitNew)
}

// admitNew admits a request under a member of its own.
func admitNew(s store, ctx context.Context, keys []string, budgets []luascripts.Budget) ([]luascripts.Reply, error) {
	return s.admit(ctx, uuid.NewString(), keys, budgets)
}

// Peek tells what Check would find, without taking anything or writing to Redis. Remaining is what
// is left now, before any call. Errors, the kill switch and the cost are those of Check.
func (l *Limiter) Peek(ctx context.Context, userID string, limit int, window time.Duration) (Decision, error) {
	return l.decide(ctx, "peek", userID, limit, window, store.peek)
}

// askFunc is one question to a store. It is no bound method, which would have to be allocated.
type askFunc func(store, context.Context, []string, []luascripts.Budget) ([]luascripts.Reply, error)

func (l *Limiter) decide(ctx context.Context, op, userID string, limit int, window time.Duration, ask askFunc) (Decision, error) {
	if err := validate(userID, window); err != nil {
		return Decision{}, err
	}
	asked := struct { // together, for one allocation
		keys    [1]string
		budgets [1]luascripts.Budget
	}{budgets: [1]luascripts.Budget{luascripts.NewBudget(l.share(limit), window)}}
	if l.kill.on() {
		return passed(asked.budgets[0]), nil
	}
	asked.keys[0] = l.names.key(userID, window)
	ctx, cancel := l.bounded(ctx, l.deadline())
	defer cancel()
	replies, err := ask(l.store, ctx, asked.keys[:], asked.budgets[:])
	if err != nil {
		return Decision{}, fmt.Errorf("ginlimit: %s: %w", op, err)
	}
	return decision(asked.budgets[0], replies[0]), nil
}

// logError logs an error of the store, at most one a second: an outage meets every request.
func (l *Limiter) logError(ctx context.Context, message string, err error) {
	if l.logged.allow() {
		slog.ErrorContext(ctx, message, "error", err)
	}
}

// share is this replica's part of a limit.
func (l *Limiter) share(limit int) int {
	if limit <= 0 {
		return limit
	}
	return max(1, limit/l.replicas)
}

// Reset forgets what a user has taken from these windows of this scope, all in one step; without
// windows, from the minute and the day. It works while the kill switch is on. Errors are those of
// Check. One round trip.
func (l *Limiter) Reset(ctx context.Context, userID string, windows ...time.Duration) error {
	if len(windows) == 0 {
		windows = []time.Duration{minute, day}
	}
	keys := make([]string, len(windows))
	for i, window := range windows {
		if err := validate(userID, window); err != nil {
			return err
		}
		keys[i] = l.names.key(userID, window)
	}
	ctx, cancel := l.bounded(ctx, l.deadline())
	defer cancel()
	if err := l.store.reset(ctx, keys); err != nil {
		return fmt.Errorf("ginlimit: reset: %w", err)
	}
	return nil
}

func validate(userID string, window time.Duration) error {
	if userID == "" {
		return ErrInvalidUserID
	}
	if window < time.Second || window%time.Second != 0 {
		return fmt.Errorf("%w: %v", ErrInvalidWindow, window)
	}
	return nil
}

// mustNotBeNil panics where a constructor was given nil, or an interface that holds nil: at start,
// instead of at the first request.
func mustNotBeNil(what string, v any) {
	if isNil(v) {
		panic("ginlimit: " + what + " is nil")
	}
}

func isNil(v any) bool {
	if v == nil {
		return true
	}
	switch rv := reflect.ValueOf(v); rv.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Slice, reflect.Chan:
		return rv.IsNil()
	}
	return false
}
