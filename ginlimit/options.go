package ginlimit

import "github.com/gin-tiers/ratelimit/tiers"

// Option adjusts the middleware that New makes.
type Option func(*options)

type options struct {
	tiers    *tiers.Store // nil: the default
	scopes   []scopeOption
	atomic   bool
	failure  FailurePolicy
	observer Observer
}

type scopeOption struct {
	name  string
	tiers *tiers.Store
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
