package ginlimit

import (
	"time"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/plan"
)

// Decision is the answer to one call on one window. The zero value means that nothing was decided, and counts
// as rejected.
type Decision struct {
	Allowed    bool
	Limit      int           // per window: requests, tokens, or money in millionths
	Remaining  int           // left now; never negative
	RetryAfter time.Duration // 0 when allowed; otherwise > 0, exact to the millisecond
	Window     time.Duration // length of the window; 0 for "concurrent"
	Budget     string        // what was decided: "" = requests, "tokens", "spend" or "concurrent"
	Scope      string        // "" = the limiter's own
}

// RetryAfterSeconds returns RetryAfter in the form of the Retry-After header (RFC 9110, section 10.2.3):
// whole seconds, rounded up. It is at least 1 when rejected and 0 when allowed.
func (d Decision) RetryAfterSeconds() int {
	if d.Allowed {
		return 0
	}
	seconds := d.RetryAfter / time.Second
	if d.RetryAfter%time.Second > 0 {
		seconds++
	}
	return max(1, int(seconds))
}

// Name is the window's name in headers, bodies and metrics: "minute", "hour", "day", "month", or its seconds
// ("90s"); for other budgets than requests "tokens-minute", "spend-day", "concurrent". It is "" if nothing
// was decided.
func (d Decision) Name() string {
	if d.Window == 0 && d.Budget == "" {
		return ""
	}
	return budget.Dimension{Window: d.Window, Unit: budget.UnitOf(d.Budget)}.String()
}

// decisionOf is a verdict on a claim.
func decisionOf(c *plan.Claim, v budget.Verdict) Decision { return decision(c.Scope, c.Budget, v) }

// decision is the verdict of a scope's budget.
func decision(scope string, b budget.Budget, v budget.Verdict) Decision {
	return Decision{
		Allowed:    v.Allowed,
		Limit:      b.Limit,
		Remaining:  v.Remaining(b.Limit),
		RetryAfter: v.RetryAfter,
		Window:     b.Window,
		Budget:     b.Unit.String(),
		Scope:      scope,
	}
}
