package ginlimit

import (
	"time"

	"github.com/gin-tiers/ratelimit/luascripts"
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

func decision(b luascripts.Budget, r luascripts.Reply) Decision {
	return Decision{
		Allowed:    r.Allowed,
		Limit:      b.Limit(),
		Remaining:  max(0, max(0, b.Limit())-r.Count),
		RetryAfter: r.RetryAfter,
		Window:     b.Window(),
	}
}

// passed is the decision on a budget of which nothing was taken: the kill switch's answer.
func passed(b luascripts.Budget) Decision {
	return decision(b, luascripts.Reply{Allowed: true})
}
