package ginlimit

import (
	"time"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
)

// Decision is the answer to one call against one window. The zero value, nothing decided, counts
// as rejected.
type Decision struct {
	Allowed    bool
	Limit      int           // requests per window
	Remaining  int           // requests left now; never negative
	RetryAfter time.Duration // 0 when allowed; otherwise > 0, exact to the millisecond
	Window     time.Duration // length of the window
	Budget     string        // dimension that was decided; "" = requests
	Scope      string        // "" = the limiter's own
}

// RetryAfterSeconds returns RetryAfter as the Retry-After header wants it (RFC 9110, section
// 10.2.3): whole seconds, rounded up. It is at least 1 when rejected and 0 when allowed.
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

// decision is the verdict of a scope's budget.
func decision(scope string, b budget.Budget, v budget.Verdict) Decision {
	return Decision{
		Allowed:    v.Allowed,
		Limit:      b.Limit,
		Remaining:  v.Remaining(b.Limit),
		RetryAfter: v.RetryAfter,
		Window:     b.Window,
		Scope:      scope,
	}
}

// tightest is the decision that leaves least of all that it was shown. On a tie it is that of the shorter
// window, then the one shown first.
type tightest struct {
	Decision
	known bool // there was one
}

// add reports whether d is now the tightest.
func (t *tightest) add(d Decision) bool {
	if t.known && (d.Remaining > t.Remaining || d.Remaining == t.Remaining && d.Window >= t.Window) {
		return false
	}
	t.Decision, t.known = d, true
	return true
}
