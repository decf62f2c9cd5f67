package ginlimit

import (
	"context"

	"github.com/gin-tiers/ratelimit/tiers"
)

// Outcome is the result of a request at a limiter.
type Outcome string

// The outcomes that an Observer gets.
const (
	// Admitted means by this limiter. A later one may still reject; then the slots go back without an event.
	Admitted Outcome = "admitted"
	Rejected Outcome = "rejected"
	// StoreError means that Redis could not decide. If FailLocal then decides, that is one more event.
	StoreError Outcome = "store_error"
	Bypassed   Outcome = "bypassed" // the kill switch was on

	Denied         Outcome = "denied"          // refused by a deny list; the decision is zero
	UpstreamFull   Outcome = "upstream_full"   // rejected by a provider's cap, which the decision is about
	ShadowRejected Outcome = "shadow_rejected" // passes, but would have been rejected without WithShadow
)

// The failure policies, as events name them.
const (
	PolicyClosed = "closed" // 503
	PolicyOpen   = "open"   // passes, unlimited
	PolicyLocal  = "local"  // FailLocal's limiter decides; that is one more event
)

// Event is one outcome. It names no user. Outcome, Route, Tier and Local have few values and may be labels of
// a metric; Decision's numbers and Err may not. There is no event for a request that was answered with 401,
// 499, tier_lookup_failed or invalid_request, or whose own deadline passed before the decision.
type Event struct {
	Outcome  Outcome
	Route    string     // the route's template, as c.FullPath gives it; "" if no route matched
	Tier     tiers.Tier // one of the tier table: the fallback for an unknown tier
	Decision Decision   // that rejected, or the tightest; only Allowed if all is unlimited; zero on StoreError
	Local    bool       // decided by the limiter of FailLocal
	Err      error      // on StoreError
	Policy   string     // on StoreError: PolicyClosed, PolicyOpen or PolicyLocal

	UnknownTier bool // the resolver named a tier that is in no table; not set for a missing tier
}

// Observer gets the decisions of the middleware. Observe runs on the request's goroutine, many at once,
// before the handler: it should return quickly and may call the limiter.
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// ObserverFunc makes an Observer of a function.
type ObserverFunc func(ctx context.Context, e Event)

// Observe calls f.
func (f ObserverFunc) Observe(ctx context.Context, e Event) { f(ctx, e) }
