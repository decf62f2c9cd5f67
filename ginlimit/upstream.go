package ginlimit

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/plan"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/request"
	"github.com/gin-tiers/ratelimit/tiers"
)

// Upstream is what a provider allows for a key that all callers share: requests and tokens in any minute, and
// requests in progress. 0 means no such cap.
//
// Share is the part of every cap, above 0 and at most 1, up to which requests of a tier are admitted. A tier
// with share 0.7 is rejected while seven tenths of the cap are taken, by any tier, so three tenths are left
// for other tiers. A tier without a share may use all of it.
type Upstream struct {
	Name            string // of the provider's key; it is part of the keys in Redis, so not a secret
	PerMinute       int
	TokensPerMinute int // needs WithUsage
	Concurrent      int
	Share           map[tiers.Tier]float64
}

// longestClosed bounds how long a provider's answer closes its gate.
const longestClosed = 24 * time.Hour

// mustBeValid panics if there is no cap, or an impossible one.
func (u Upstream) mustBeValid() {
	switch {
	case u.Name == "":
		panic("ginlimit: WithUpstream: Name is empty")
	case u.PerMinute < 0 || u.TokensPerMinute < 0 || u.Concurrent < 0:
		panic("ginlimit: WithUpstream: a cap of " + strconv.Quote(u.Name) + " is negative")
	case u.PerMinute == 0 && u.TokensPerMinute == 0 && u.Concurrent == 0:
		panic("ginlimit: WithUpstream: " + strconv.Quote(u.Name) + " has no cap")
	}
	for tier, share := range u.Share {
		if !(share > 0 && share <= 1) {
			panic(fmt.Sprintf("ginlimit: WithUpstream: %q: share %v of tier %q is not above 0 and at most 1",
				u.Name, share, tier))
		}
	}
}

// budgets are the caps for a tier: the gate, and its share of the numbers.
func (u Upstream) budgets(t tiers.Tier) []budget.Budget {
	share, ok := u.Share[t]
	if !ok {
		share = 1
	}
	all := []budget.Budget{{Dimension: budget.Dimension{Unit: budget.Open}}}
	for _, b := range []budget.Budget{
		{Dimension: budget.Dimension{Window: budget.Minute, Bounded: true}, Limit: u.PerMinute},
		{Dimension: budget.Dimension{Window: budget.Minute, Unit: budget.Tokens}, Limit: u.TokensPerMinute},
		{Dimension: budget.Dimension{Unit: budget.Concurrent}, Limit: u.Concurrent},
	} {
		switch {
		case b.Limit > 0:
			// Floats must not round 0.7 of 10 down to 6.
			b.Limit = max(1, int(math.Floor(share*float64(b.Limit)+1e-9)))
		case b.Unit == budget.Concurrent:
			b.Limit = budget.NoLimit
		default:
			continue
		}
		all = append(all, b)
	}
	return all
}

// UpstreamUsage returns how much of a provider's caps is left for a tier, as Usage does for a user. It takes
// nothing and writes nothing. While the provider's own answer has closed the gate, nothing is left, and
// RetryAfter says for how long. Errors and kill switch are as for Check. One round trip.
func (l *Limiter) UpstreamUsage(ctx context.Context, u Upstream, t tiers.Tier) ([]Decision, error) {
	u.mustBeValid()
	caps := u.budgets(t)
	for i := range caps {
		caps[i].Limit = l.share(caps[i].Limit)
	}
	s := plan.UpstreamStep(u.Name, l.names, caps)
	claims := s.Of("", &plan.Costs{Weight: 1}, nil)
	verdicts := make([]budget.Verdict, len(claims))
	for i := range verdicts {
		verdicts[i].Allowed = true
	}
	if !l.kill.on() {
		ctx, cancel := request.Bounded(ctx, l.counter.Deadline(ctx, request.Whole))
		defer cancel()
		var err error
		if verdicts, err = l.counter.Store.Peek(ctx, claims); err != nil {
			return nil, fmt.Errorf("ginlimit: upstream usage: %w", err)
		}
	}
	var decisions []Decision
	for i, claim := range claims {
		if claim.Unit == budget.Open || claim.Limit == budget.NoLimit {
			continue
		}
		v := verdicts[i]
		if gate := verdicts[0]; !gate.Allowed {
			v = budget.Verdict{Used: claim.Limit, RetryAfter: max(v.RetryAfter, gate.RetryAfter)}
		}
		decisions = append(decisions, decision("", claim.Budget, v))
	}
	return decisions, nil
}

// closeUpstream closes the provider's gate for all processes if the provider has answered that it is
// overloaded, and for how long. The client still gets the answer.
func (m *middleware) closeUpstream(c *gin.Context) {
	status := c.Writer.Status()
	if status != http.StatusTooManyRequests && status != statusOverloaded {
		return
	}
	wait, ok := retryAfter(c.Writer.Header(), time.Now())
	if !ok {
		return
	}
	l := m.limiter
	names := l.names
	names.Scope = ""
	key := names.Head() + names.Upstream(m.upstream.Name) + names.Tail(budget.Dimension{Unit: budget.Open})
	ctx := context.WithoutCancel(c.Request.Context())
	ctx, cancel := request.Bounded(ctx, l.counter.Deadline(ctx, request.Whole))
	defer cancel()
	if err := l.counter.Store.Close(ctx, key, min(wait, longestClosed)); err != nil {
		l.logError(ctx, "ginlimit: a provider's Retry-After could not be shared", err)
	}
}

// statusOverloaded is Anthropic's status for an overload.
const statusOverloaded = 529

// retryAfter reads how long an answer says to wait: retry-after-ms, or Retry-After in seconds or as a date.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	if ms := decimal(h.Get("Retry-After-Ms")); ms > 0 {
		return time.Duration(min(ms, float64(longestClosed.Milliseconds())) * float64(time.Millisecond)), true
	}
	value := h.Get(HeaderRetryAfter)
	if seconds := decimal(value); seconds > 0 {
		return time.Duration(min(seconds, longestClosed.Seconds()) * float64(time.Second)), true
	}
	if date, err := http.ParseTime(value); err == nil && date.After(now) {
		return date.Sub(now), true
	}
	return 0, false
}

// decimal reads digits with at most one point, and returns 0 for anything else, such as "inf".
func decimal(text string) float64 {
	if strings.Trim(text, "0123456789.") != "" {
		return 0
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return n
}
