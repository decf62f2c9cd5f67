package ginlimit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/memstore"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/redisstore"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/rejectioncache"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/request"
	"github.com/gin-tiers/ratelimit/tiers"
)

// Errors of Check, Peek, Usage and Reset; match them with errors.Is.
var (
	// ErrInvalidWindow and ErrInvalidUserID mean that Redis was not called.
	ErrInvalidWindow = errors.New("ginlimit: window is not a whole number of seconds, at least one")
	ErrInvalidUserID = errors.New("ginlimit: user id is empty")
	// ErrUnavailable means that Redis was not called, because it did not answer earlier calls: the circuit
	// breaker is open.
	ErrUnavailable = redisstore.ErrUnavailable
)

// Bounds of a memory limiter, about 160 MB in all. Above either, the least recently used key is forgotten,
// and its user starts anew; a key in use is never forgotten for its own size.
const (
	MemoryKeys    = memstore.Keys    // windows of users; a user with a minute and a day has two
	MemoryEntries = memstore.Entries // admitted requests in all of them
)

// DefaultTimeout bounds a decision on Redis, including giving back, if the client obeys deadlines and
// WithTimeout does not say otherwise.
const DefaultTimeout = 100 * time.Millisecond

// Limiter counts the requests of users in sliding windows, exactly: any half-open span (now-window, now] has
// at most limit admitted calls, over all processes that share the Redis. A rejected call takes nothing and
// extends nothing.
//
// It is safe for concurrent use. Make one per process, with NewLimiter or NewMemoryLimiter.
type Limiter struct {
	counter  request.Counter
	names    budget.Names
	replicas int

	// Shared with all scopes.
	kill    *killSwitch
	logged  *logRate   // of the store's errors
	cluster *sync.Once // of telling that Redis is a Cluster
	mounts  *mounts
	redis   *redisstore.Store // where it counts in Redis, for Stats
}

// NewLimiter returns a Limiter that counts in Redis: a *redis.Client, a *redis.ClusterClient, a
// *redis.Ring or anything else that runs scripts. It sends nothing, so Redis may come up later.
// It panics on a nil client.
//
// Decisions that arrive at the same time go to a single server together, in one script call; a lone decision
// goes at once. Each has its own reply and its own error. This needs all keys on one server, as with a
// *redis.Client, Sentinel included. With a Cluster or Ring, a client of an unknown type, WithHashTags or
// WithClock each decision is sent alone. If the server of a *redis.Client turns out to be a Cluster, it
// refuses the first group; from then on each decision is sent alone, too, after one warning.
func NewLimiter(rdb redis.Scripter, opts ...LimiterOption) *Limiter {
	mustNotBeNil("NewLimiter: rdb", rdb)
	c := newLimiterConfig("NewLimiter", opts)
	switch rdb.(type) {
	case interface{ Options() *redis.ClusterOptions }, interface{ Options() *redis.RingOptions }:
		c.names.HashTags = true
	}
	if c.replicas != 1 {
		panic("ginlimit: NewLimiter: WithReplicas is for a memory limiter; Redis counts for all replicas")
	}
	// With a caller's clock, a decision that waited would carry an old time.
	oneServer := redisstore.OneServer(rdb) && !c.names.HashTags && c.clock == nil
	store := redisstore.New(rdb, c.clock, oneServer)
	l := newLimiter(store, c)
	l.redis = store
	heeds, known := redisstore.HeedsDeadlines(rdb)
	switch {
	case heeds:
		l.counter.Timeout = cmp.Or(l.counter.Timeout, DefaultTimeout)
	case known && l.counter.Timeout == 0:
		slog.Warn("ginlimit: a hung Redis may hold requests for its client's ReadTimeout and retries",
			"cause", "the Redis client has no ContextTimeoutEnabled", "cure", "redisclient.New or WithTimeout")
	}
	return l
}

// NewMemoryLimiter returns a Limiter that counts in this process: the same decisions without Redis, for one
// replica, for tests and for FailLocal. It never waits and never fails, so it ignores contexts. See
// MemoryKeys and MemoryEntries for its bounds.
func NewMemoryLimiter(opts ...LimiterOption) *Limiter {
	c := newLimiterConfig("NewMemoryLimiter", opts)
	l := newLimiter(memstore.New(c.clock), c)
	l.counter.Local, l.counter.Timeout = true, 0
	return l
}

func newLimiter(s budget.Store, c limiterConfig) *Limiter {
	now := c.clock
	if now == nil {
		now = time.Now
	}
	l := &Limiter{
		counter:  request.Counter{Store: s, Direct: s, Timeout: c.timeout},
		names:    c.names,
		replicas: c.replicas,
		kill:     newKillSwitch(c.killSwitch, now),
		logged:   newLogRate(time.Second),
		cluster:  &sync.Once{},
		mounts:   &mounts{},
	}
	if c.rejections > 0 {
		l.counter.Store = rejectioncache.New(s, c.rejections, c.clock)
	}
	failed := func(ctx context.Context, message string, err error) { l.logError(ctx, message, err) }
	l.counter.LogError = failed
	l.counter.Leases = &request.Leases{Store: s, Failed: failed}
	return l
}

// Scope returns a limiter with its own keys, for a budget per route. Redis, clock and kill switch are the
// same. Scope("") is no scope, and a scope of a scope replaces it.
func (l *Limiter) Scope(name string) *Limiter {
	scoped := *l
	scoped.names.Scope = name
	return &scoped
}

// SetDisabled turns the kill switch on or off at run time, for all scopes. Turning it off does not override
// RATE_LIMIT_DISABLED or the function of WithKillSwitch: each of them is enough.
func (l *Limiter) SetDisabled(on bool) { l.kill.set(on) }

// Disabled reports whether the kill switch is on, by SetDisabled, RATE_LIMIT_DISABLED or the function of
// WithKillSwitch: every call passes, and Redis is not called. It logs nothing.
func (l *Limiter) Disabled() bool { return l.kill.forced.Load() || l.kill.flag() }

// Check decides one request of a user. It is admitted and counted if fewer than limit of the user's requests
// were admitted within the last window. A limit of 0 or less rejects, with RetryAfter = window. A rejection
// is a Decision, not an error.
//
// While the kill switch is on, valid arguments are allowed, with the whole limit remaining.
//
// The error is ErrInvalidUserID, ErrInvalidWindow, ErrUnavailable, ctx's, or Redis's; the Decision is then
// zero. A call that timed out may still have been counted; retries by go-redis are counted once.
//
// One round trip, one script: four Redis commands and the server's TIME; O(log N) for N requests in the
// window.
func (l *Limiter) Check(
	ctx context.Context, userID string, limit int, window time.Duration,
) (Decision, error) {
	return l.ask(ctx, "check", userID, limit, window, admitNew)
}

// admitNew admits a request under an id of its own.
func admitNew(s budget.Store, ctx context.Context, claims []budget.Claim) ([]budget.Verdict, error) {
	verdicts, _, err := s.Admit(ctx, uuid.NewString(), claims)
	return verdicts, err
}

// Peek returns what Check would find. It takes nothing and writes nothing to Redis. Remaining is what is left
// now, before any call. Errors, kill switch and cost are as for Check.
func (l *Limiter) Peek(
	ctx context.Context, userID string, limit int, window time.Duration,
) (Decision, error) {
	return l.ask(ctx, "peek", userID, limit, window, budget.Store.Peek)
}

// askFunc is one query of a store. A bound method instead would allocate at each call.
type askFunc func(budget.Store, context.Context, []budget.Claim) ([]budget.Verdict, error)

func (l *Limiter) ask(
	ctx context.Context, op, userID string, limit int, window time.Duration, ask askFunc,
) (Decision, error) {
	if err := validate(userID, window); err != nil {
		return Decision{}, err
	}
	b := budget.Budget{Dimension: budget.Dimension{Window: window}, Limit: l.share(limit)}
	if l.kill.on() {
		return decision(l.names.Scope, b, budget.Verdict{Allowed: true}), nil
	}
	ctx, cancel := l.counter.Bounded(ctx, l.counter.Deadline(ctx, request.Whole))
	defer cancel()
	claims := []budget.Claim{{Key: l.names.Key(userID, b.Dimension), Budget: b}}
	verdicts, err := ask(l.counter.Store, ctx, claims)
	if err != nil {
		return Decision{}, fmt.Errorf("ginlimit: %s: %w", op, err)
	}
	return decision(l.names.Scope, b, verdicts[0]), nil
}

// Usage returns what is left of every budget of a tier: requests, tokens, money, each shortest window first,
// and requests in progress. Each number of limits that is neither missing nor unlimited has a decision, as
// from Peek. It takes nothing and writes nothing. Errors and kill switch are as for Check. One round trip.
func (l *Limiter) Usage(ctx context.Context, userID string, limits tiers.Limits) ([]Decision, error) {
	if userID == "" {
		return nil, ErrInvalidUserID
	}
	all := budget.Dimensions{Usage: true, Concurrent: true, Bounded: l.mounts.bounded(l.names.Scope)}
	var claims []budget.Claim
	for _, b := range budget.Of(limits, all) {
		if b.Limit == 0 {
			continue
		}
		b.Limit = l.share(b.Limit)
		claims = append(claims, budget.Claim{Key: l.names.Key(userID, b.Dimension), Budget: b})
	}
	verdicts := make([]budget.Verdict, len(claims))
	switch {
	case l.kill.on():
		for i := range verdicts {
			verdicts[i].Allowed = true
		}
	case len(claims) > 0:
		ctx, cancel := request.Bounded(ctx, l.counter.Deadline(ctx, request.Whole))
		defer cancel()
		var err error
		if verdicts, err = l.counter.Store.Peek(ctx, claims); err != nil {
			return nil, fmt.Errorf("ginlimit: usage: %w", err)
		}
	}
	decisions := make([]Decision, len(claims))
	for i, claim := range claims {
		decisions[i] = decision(l.names.Scope, claim.Budget, verdicts[i])
	}
	return decisions, nil
}

// Reset deletes what a user has taken in these windows of this scope, of requests, tokens and money, all in
// one step. Without windows it takes the minute and the day. Requests in progress stay counted as such. It
// works while the kill switch is on. Errors are as for Check. One round trip.
func (l *Limiter) Reset(ctx context.Context, userID string, windows ...time.Duration) error {
	if len(windows) == 0 {
		windows = []time.Duration{budget.Minute, budget.Day}
	}
	var keys []string
	for _, window := range windows {
		if err := validate(userID, window); err != nil {
			return err
		}
		for _, d := range budget.DimensionsOf(window) {
			keys = append(keys, l.names.Key(userID, d))
		}
	}
	ctx, cancel := request.Bounded(ctx, l.counter.Deadline(ctx, request.Whole))
	defer cancel()
	if err := l.counter.Store.Reset(ctx, keys); err != nil {
		return fmt.Errorf("ginlimit: reset: %w", err)
	}
	return nil
}

// share is this replica's part of a limit.
func (l *Limiter) share(limit int) int {
	if limit <= 0 {
		return limit
	}
	return max(1, limit/l.replicas)
}

// logError logs an error of the store, at most one a second, because every request meets an outage. If the
// client does not know that Redis is a Cluster, the error is permanent; its cure is logged once.
func (l *Limiter) logError(ctx context.Context, message string, err error, attrs ...any) {
	if redis.HasErrorPrefix(err, "CROSSSLOT") || redis.HasErrorPrefix(err, "MOVED ") {
		l.cluster.Do(func() {
			slog.WarnContext(ctx,
				"ginlimit: Redis is a Cluster, which this client does not know, so it refuses scripts",
				"cure", "redisclient.NewCluster, or WithHashTags where one endpoint hides the Cluster")
		})
	}
	if l.logged.allow(time.Now()) {
		slog.ErrorContext(ctx, message, append([]any{"error", err}, attrs...)...)
	}
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

// mustNotBeNil panics if a constructor was given nil, or an interface that holds nil: at start, not at the
// first request.
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
