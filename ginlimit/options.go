package ginlimit

import (
	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit/headers"
	"github.com/gin-tiers/ratelimit/tiers"
)

// Option adjusts the middleware that New makes.
type Option func(*options)

type options struct {
	tiers    *tiers.Store // nil: the default
	live     TierSource   // in place of tiers, or nil
	scopes   []scopeOption
	atomic   bool
	failure  FailurePolicy
	observer Observer

	estimator   Estimator
	concurrency bool
	bounded     bool
	refundOn    func(c *gin.Context) bool
	upstream    *Upstream
	weight      func(c *gin.Context) (int, error)
	subjects    []subjectOption

	dialects []*headers.Dialect // nil: the default
	expose   bool
	body     Body // nil: the default
	skip     func(c *gin.Context) bool
	shadow   bool
}

type scopeOption struct {
	name  string
	tiers *tiers.Store
}

type subjectOption struct {
	name     string
	tiers    *tiers.Store
	resolver TierResolver
}

// WithTiers sets the tier table; the default is tiers.Default(). Give it to all mounts on a scope of a
// limiter or to none. It panics on nil.
func WithTiers(s *tiers.Store) Option {
	mustNotBeNil("WithTiers: store", s)
	return func(o *options) { o.tiers = s }
}

// WithScope adds a separate budget, with its own keys, that every request must also meet: for example a
// route's budget beside that of the whole API. Both are decided in one script call, all or none: the option
// implies WithAtomicWindows. A tier that s does not name gets the limits of s's fallback; New logs which
// tiers these are. The option may be given several times. New panics on an empty name, on one that was given
// before, and on the limiter's own scope; WithScope panics on a nil store.
func WithScope(name string, s *tiers.Store) Option {
	mustNotBeNil("WithScope: store", s)
	return func(o *options) { o.scopes = append(o.scopes, scopeOption{name, s}) }
}

// WithAtomicWindows decides all windows of a request in one script call, one round trip. Without it each
// window is a separate call: until a rejected request's slots are given back, a shorter window may reject
// another request of that user, and a request that ends in 503 may have cost a slot.
func WithAtomicWindows() Option {
	return func(o *options) { o.atomic = true }
}

// WithFailurePolicy sets what happens to a request that Redis could not decide; the default is
// FailClosed.
func WithFailurePolicy(p FailurePolicy) Option {
	return func(o *options) { o.failure = p }
}

// WithObserver sets the observer of all decisions. It panics on nil.
func WithObserver(o Observer) Option {
	mustNotBeNil("WithObserver: observer", o)
	return func(opts *options) { opts.observer = o }
}

// WithUsage switches on the budgets of tokens and money (tokens_per_minute, spend_per_day, …). The estimate
// of e is reserved at admission, so that requests at the same time cannot overshoot together. The usage that
// the handler reports through AdmissionFrom settles it. One script call decides all budgets of a request
// together; a second one finishes it. A request that needs more than a whole budget is answered with 400,
// code "request_exceeds_budget", and costs nothing.
//
// A window of tokens or money frees its budget late, by less than a sixtieth of the window, and never early:
// under a steady load of many requests, 60/61 of a budget can be used. If a process dies, the reservations of
// its requests stay taken until they leave their windows. WithUsage panics on nil.
func WithUsage(e Estimator) Option {
	mustNotBeNil("WithUsage: estimator", e)
	return func(o *options) { o.estimator = e }
}

// WithConcurrency switches on the budget of requests in progress (concurrent), exact over all processes. A
// request holds a lease from its admission until its handler returns. Leases are renewed every 5 s while the
// handler runs: on a single server up to 100 in one call, otherwise one call per user. If a process dies, its
// leases end within 15 s. A rejection's Retry-After is 1 s: nobody knows when a request will end. All budgets
// are decided together.
func WithConcurrency() Option { return func(o *options) { o.concurrency = true } }

// WithBoundedWindows stores all request windows of a tier except the shortest in at most 61 records instead
// of one entry per request: 1 KB for a day of 100,000 requests instead of 13 MB. They then free their budget
// late, by less than a sixtieth of the window, and never early. They have other keys, so counts start anew;
// Usage and Reset see them, Check and Peek do not. Give it to all mounts on a scope of a limiter or to none:
// otherwise New panics. All budgets are decided together.
func WithBoundedWindows() Option { return func(o *options) { o.bounded = true } }

// WithRefundOn gives back everything that a request took, in every limiter that it passed, if f returns true:
// for example after a failure of a provider. f is called once, after the handler has returned or panicked; if
// it panicked before its answer began, the status is 500. It overrides what the handler has recorded.
// WithRefundOn panics on nil.
func WithRefundOn(f func(c *gin.Context) bool) Option {
	mustNotBeNil("WithRefundOn: function", f)
	return func(o *options) { o.refundOn = f }
}

// WithUpstream keeps all callers together below what a provider allows for one key, and lower tiers below
// their share of it. If the caller's own budgets admit a request and the cap does not, the answer is 503,
// code "upstream_capacity", with Retry-After, and the request takes nothing. The cap is decided after the
// caller's budgets, in a second round trip. Its windows free their budget late, by less than a second, and
// never early.
//
// If the handler answers 429 or 529 with retry-after-ms or Retry-After (seconds or a date), that counts as
// the provider's answer: every process rejects for that long, a day at most, without calling the provider.
//
// All mounts with the same Upstream name on one Redis share its cap, in any scope, and should have the same
// numbers. WithUpstream panics on an empty name, if there is no cap, on negative caps and on shares outside
// (0, 1]. New panics if tokens are capped and WithUsage is missing.
func WithUpstream(u Upstream) Option {
	u.mustBeValid()
	return func(o *options) { o.upstream = &u }
}

// WithScopeFor adds a budget of a second subject, with its own keys, that every request must also meet: for
// example the organisation's beside the user's. r returns that subject and its tier. If it returns
// ErrNoSubject or an empty id, the request has no such budget; any other error is handled like an error of
// New's resolver. One script call decides all, the user's budgets first. On a Cluster or Ring, and with
// WithHashTags, that needs WithHashTagOf: otherwise the second subject's keys may be on another node. It is
// then decided after the user, and if it rejects, what the user took is given back. A rejection names the
// scope. For its usage call limiter.Scope(name).Usage. The option may be given several times, with different
// names. New panics on an empty name and on one that is used already; WithScopeFor panics on nil.
func WithScopeFor(name string, s *tiers.Store, r TierResolver) Option {
	mustNotBeNil("WithScopeFor: store", s)
	mustNotBeNil("WithScopeFor: resolver", r)
	return func(o *options) { o.subjects = append(o.subjects, subjectOption{name, s, r}) }
}

// WithWeight makes a request count as f(c) requests in every request window that it meets, for example by its
// model. A request of weight 0 takes nothing from these windows and passes even if they are full. If the
// weight is more than a whole budget, the answer is 400, code "request_exceeds_budget"; for an error, a
// negative number or one above 1,000 it is 400, code "invalid_request". f runs on the request's goroutine,
// before the decision. All windows are then decided together. WithWeight panics on nil.
func WithWeight(f func(c *gin.Context) (int, error)) Option {
	mustNotBeNil("WithWeight: function", f)
	return func(o *options) { o.weight = f }
}
