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

// WithTiers sets the tier table; the default is tiers.Default(). Give it to every mount on a scope of a
// limiter, or to none. It panics on nil.
func WithTiers(s *tiers.Store) Option {
	mustNotBeNil("WithTiers: store", s)
	return func(o *options) { o.tiers = s }
}

// WithScope adds a budget of its own, under keys of its own, which every request must meet as well:
// a route's on top of the whole API's. It is decided together with the first, in the same script
// call, all or none, as by WithAtomicWindows, which it implies. The option may be given several
// times. New panics on an empty name, on one that was given before, and on the limiter's own scope; WithScope
// panics on a nil store.
func WithScope(name string, s *tiers.Store) Option {
	mustNotBeNil("WithScope: store", s)
	return func(o *options) { o.scopes = append(o.scopes, scopeOption{name, s}) }
}

// WithAtomicWindows decides all windows of a request in one script, one round trip. Without it each
// window is a call of its own: until a rejected request's slots are given back, another request of
// that user may be rejected by a shorter window, and a request that ends in 503 may have cost a slot.
func WithAtomicWindows() Option {
	return func(o *options) { o.atomic = true }
}

// WithFailurePolicy sets what happens to a request that Redis could not decide; the default is
// FailClosed.
func WithFailurePolicy(p FailurePolicy) Option {
	return func(o *options) { o.failure = p }
}

// WithObserver sets who is told of every decision. It panics on nil.
func WithObserver(o Observer) Option {
	mustNotBeNil("WithObserver: observer", o)
	return func(opts *options) { opts.observer = o }
}

// WithUsage switches on the budgets of tokens and money (tokens_per_minute, spend_per_day, …). What e
// estimates is reserved at admission, so that requests at the same time cannot overshoot together; what the
// handler reports by AdmissionFrom settles it. All budgets of a request are decided together, in one script
// call, and finished in one more. A request that needs more than a whole budget is answered with 400, code
// "request_exceeds_budget", and costs nothing.
//
// A window of tokens or money is late by less than a sixtieth of itself, and never early: under a steady load
// of many requests, 60 of 61 parts of a budget can be used. A request whose process dies keeps what it has
// reserved until that leaves its windows. It panics on nil.
func WithUsage(e Estimator) Option {
	mustNotBeNil("WithUsage: estimator", e)
	return func(o *options) { o.estimator = e }
}

// WithConcurrency switches on the budget of requests under way (concurrent), exact over all processes: a
// request holds a lease from its admission until its handler returns. Leases are renewed while the handler
// runs, in one call a process every 5 s; one of a process that has died ends after 15 s. A rejection's
// Retry-After is 1 s, since nobody knows when a request will end. Decided together with all other budgets.
func WithConcurrency() Option { return func(o *options) { o.concurrency = true } }

// WithBoundedWindows keeps the windows of requests above a tier's shortest in at most 61 records in place of
// an entry for each request: 1 KB for a day of 100,000 requests instead of 13 MB. They are then late by less
// than a sixtieth of the window, and never early. Their keys are others, so counts start anew; Check, Peek
// and Reset with windows do not see them, Usage and Reset without windows do. Give it to all mounts on a
// scope of a limiter or to none: otherwise New panics. Decided together with all other budgets.
func WithBoundedWindows() Option { return func(o *options) { o.bounded = true } }

// WithRefundOn gives all back that a request took, in every limiter that it passed, if f says so: for
// failures of a provider, say. f is asked once, when the handler has returned, and not after a panic. It
// overrules what the handler has recorded. It panics on nil.
func WithRefundOn(f func(c *gin.Context) bool) Option {
	mustNotBeNil("WithRefundOn: function", f)
	return func(o *options) { o.refundOn = f }
}

// WithUpstream keeps all callers together below what a provider allows for one key, and lower tiers below
// their share of it. A request that the caller's own budgets admit and the cap does not is answered with 503,
// code "upstream_capacity", and Retry-After, and has taken nothing. The cap is a decision of its own after
// that on the caller, in a second round trip; its windows are late by less than a second and never early.
//
// Where the handler's answer is 429 or 529 with retry-after-ms or Retry-After, in seconds or as a date, the
// provider is taken to have said so: every process then refuses for that long, a day at most, without asking
// it.
//
// All mounts that name an Upstream on one Redis share its cap, whatever their scope, and should agree on the
// numbers. It panics on an empty name, without a cap, on negative ones and on shares outside (0, 1]; New
// panics where tokens are capped and WithUsage is missing.
func WithUpstream(u Upstream) Option {
	u.mustBeValid()
	return func(o *options) { o.upstream = &u }
}

// WithScopeFor adds a budget of another subject than the user, under keys of its own, which every request
// must meet as well: the organisation's beside the user's. R tells who that is and on which tier; where it
// answers ErrNoSubject or an empty id, the request has no such budget, and any other error is answered as the
// resolver's of New. All is decided together, the user's budgets first, in one script call. On a Cluster or
// Ring, and with WithHashTags, that needs WithHashTagOf. Without it, the other subject's keys are on another
// node: the subject is decided after the user, and what the user took is given back if it rejects. A rejection
// names the scope. Usage of the other subject is limiter.Scope(name).Usage. The option may be given several
// times, with other names. New panics on an empty name and on one that is there already; WithScopeFor panics
// on nil.
func WithScopeFor(name string, s *tiers.Store, r TierResolver) Option {
	mustNotBeNil("WithScopeFor: store", s)
	mustNotBeNil("WithScopeFor: resolver", r)
	return func(o *options) { o.subjects = append(o.subjects, subjectOption{name, s, r}) }
}

// WithWeight makes a request cost as many requests as f says, by its model say, in every window of requests
// that it meets. 0 takes no request and needs no room for one; a request that costs more than a whole budget
// is answered with 400, code "request_exceeds_budget"; an error, a negative number and one above 1,000 with
// 400, code "invalid_request". F runs on the request's goroutine, before the decision. All windows are then
// decided together. It panics on nil.
func WithWeight(f func(c *gin.Context) (int, error)) Option {
	mustNotBeNil("WithWeight: function", f)
	return func(o *options) { o.weight = f }
}
