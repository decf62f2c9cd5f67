package ginlimit

import (
	"context"

	"github.com/gin-tiers/ratelimit/tiers"
)

// Outcome is how a request fared at a limiter.
type Outcome string

// The outcomes that an Observer is told of.
const (
	// Admitted is by this limiter. One after it may still reject; then its slots go back without an event.
	Admitted Outcome = "admitted"
	Rejected Outcome = "rejected"
	// StoreError is that Redis could not decide. One more event tells what the policy did, if it decided.
	StoreError Outcome = "store_error"
	Bypassed   Outcome = "bypassed" // the kill switch was on

	Denied         Outcome = "denied"          // refused by a deny list; the decision is zero
	UpstreamFull   Outcome = "upstream_full"   // refused at a provider's cap; the decision is on that
	ShadowRejected Outcome = "shadow_rejected" // would have been rejected, and passes: WithShadow
)

// What a failure policy does with a request that Redis could not decide, as events name it.
const (
	PolicyClosed = "closed" // 503
	PolicyOpen   = "open"   // passes, unlimited
	PolicyLocal  = "local"  // FailLocal's limiter decides, which makes one more event
)

// Event is one outcome. It names no user. Outcome, Route, Tier and Local have few values and make
// labels of a metric; Decision's numbers and Err do not. A request that was answered with 401,
// tier_lookup_failed or 499 makes no event.
type Event struct {
	Outcome  Outcome
	Route    string     // the route's template, as c.FullPath gives it; "" where no route matched
	Tier     tiers.Tier // one of the tier table: an unknown tier is told as the fallback
	Decision Decision   // the one that rejected, or the tightest; only Allowed where none is; zero on StoreError
	Local    bool       // decided by the limiter of FailLocal
	Err      error      // on StoreError
	Policy   string     // on StoreError: PolicyClosed, PolicyOpen or PolicyLocal

	UnknownTier bool // the resolver named a tier that no table has; not set for a missing one
}

// Observer is told of what the middleware decides. Observe runs on the request's goroutine, by many
// at once, before the handler: it should return quickly and may call the limiter.
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// ObserverFunc is a function that is an Observer.
type ObserverFunc func(ctx context.Context, e Event)

// Observe calls f.
func (f ObserverFunc) Observe(ctx context.Context, e Event) { f(ctx, e) }
