package ginlimit

import (
	"context"
	"errors"
	"fmt"
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
	store store
	names namespace
	kill  *killSwitch // shared with all scopes
}

// LimiterOption adjusts a Limiter. The defaults suit almost everybody.
type LimiterOption func(*limiterConfig)

type limiterConfig struct {
	clock      func() time.Time
	killSwitch func() bool
	hashTags   bool
}

// WithClock makes the limiter take the time, to the millisecond, from now instead of the Redis
// server's clock. It is for tests and replays: processes whose clocks differ admit too much.
// It panics on nil.
func WithClock(now func() time.Time) LimiterOption {
	mustNotBeNil("WithClock: now", now)
	return func(c *limiterConfig) { c.clock = now }
}

// WithKillSwitch replaces the environment variable RATE_LIMIT_DISABLED: while on returns true,
// every call is allowed and Redis is not asked. It is called once or more for each decision, by
// many goroutines at once. It panics on nil.
func WithKillSwitch(on func() bool) LimiterOption {
	mustNotBeNil("WithKillSwitch: on", on)
	return func(c *limiterConfig) { c.killSwitch = on }
}

// WithHashTags puts the user part of every key in literal braces, so that all keys of a user share
// a Cluster slot. A *redis.ClusterClient and a *redis.Ring get them anyway; the option is for a
// Scripter that hides one. It changes the keys, so counts start anew.
func WithHashTags() LimiterOption {
	return func(c *limiterConfig) { c.hashTags = true }
}

// NewLimiter returns a Limiter that counts in Redis: a *redis.Client, a *redis.ClusterClient, a
// *redis.Ring or anything else that runs scripts. It sends nothing, so Redis may come up later.
// It panics on a nil client.
func NewLimiter(rdb redis.Scripter, opts ...LimiterOption) *Limiter {
	mustNotBeNil("NewLimiter: rdb", rdb)
	c := newLimiterConfig("NewLimiter", opts)
	switch rdb.(type) {
	case *redis.ClusterClient, *redis.Ring:
		c.hashTags = true
	}
	return newLimiter(&redisStore{rdb: rdb, clock: c.clock}, c)
}

// NewMemoryLimiter returns a Limiter that counts in this process: the same decisions without
// Redis, for one replica, for tests and for FailLocal. It never fails. See MemoryKeys and
// MemoryEntries for its bounds.
func NewMemoryLimiter(opts ...LimiterOption) *Limiter {
	c := newLimiterConfig("NewMemoryLimiter", opts)
	return newLimiter(newMemoryStore(c.clock), c)
}

func newLimiterConfig(constructor string, opts []LimiterOption) limiterConfig {
	var c limiterConfig
	for _, opt := range opts {
		mustNotBeNil(constructor+": option", opt)
		opt(&c)
	}
	return c
}

func newLimiter(s store, c limiterConfig) *Limiter {
	now := c.clock
	if now == nil {
		now = time.Now
	}
	return &Limiter{
		store: s,
		names: namespace{hashTags: c.hashTags},
		kill:  newKillSwitch(c.killSwitch, now),
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
// The error is ErrInvalidUserID, ErrInvalidWindow, or Redis's; the Decision is then zero. A call
// whose reply was lost may have been counted; go-redis's own retries of it are counted once.
//
// One round trip, one script: four Redis commands and the server's TIME; O(log N) for N requests
// in the window.
func (l *Limiter) Check(ctx context.Context, userID string, limit int, window time.Duration) (Decision, error) {
	return l.decide("check", userID, limit, window, func(keys []string, budgets []luascripts.Budget) ([]luascripts.Reply, error) {
		return l.store.admit(ctx, uuid.NewString(), keys, budgets)
	})
}

// Peek tells what Check would find, without taking anything or writing to Redis. Remaining is what
// is left now, before any call. Errors are those of Check.
func (l *Limiter) Peek(ctx context.Context, userID string, limit int, window time.Duration) (Decision, error) {
	return l.decide("peek", userID, limit, window, func(keys []string, budgets []luascripts.Budget) ([]luascripts.Reply, error) {
		return l.store.peek(ctx, keys, budgets)
	})
}

func (l *Limiter) decide(op, userID string, limit int, window time.Duration,
	ask func([]string, []luascripts.Budget) ([]luascripts.Reply, error)) (Decision, error) {
	if err := validate(userID, window); err != nil {
		return Decision{}, err
	}
	budget := luascripts.NewBudget(limit, window)
	if l.kill.on() {
		return passed(budget), nil
	}
	replies, err := ask([]string{l.names.prefix(userID) + l.names.suffix(window)}, []luascripts.Budget{budget})
	if err != nil {
		return Decision{}, fmt.Errorf("ginlimit: %s: %w", op, err)
	}
	return decision(budget, replies[0]), nil
}

// Reset forgets what a user has taken from these windows of this scope, all in one step; without
// windows, from the minute and the day. It works while the kill switch is on.
func (l *Limiter) Reset(ctx context.Context, userID string, windows ...time.Duration) error {
	if len(windows) == 0 {
		windows = []time.Duration{minute, day}
	}
	keys := make([]string, len(windows))
	for i, window := range windows {
		if err := validate(userID, window); err != nil {
			return err
		}
		keys[i] = l.names.prefix(userID) + l.names.suffix(window)
	}
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
