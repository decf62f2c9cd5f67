package ginlimit

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/gin-tiers/ratelimit/ginlimit/headers"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/request"
)

// WithShadow decides, counts, observes and logs as usual, but rejects nothing: it shows what limits would do
// before you enforce them. A request that would have been rejected passes. It has the header
// X-RateLimit-Shadow, the name of the window ("minute", "images:day") or "denied"; takes nothing from this
// mount's budgets; is observed as ShadowRejected; and is logged, at most one a second. A request also passes
// without a subject, after a failed look-up or estimate, and if Redis cannot decide and there is no
// FailLocal. Other mounts decide as usual. A mount with headers.None does not set the header.
func WithShadow() Option { return func(o *options) { o.shadow = true } }

func (e *engine) logShadow(ctx context.Context, event Event, d Decision) {
	if e.shadows.allow(time.Now()) {
		slog.InfoContext(ctx, "ginlimit: a request would have been rejected",
			"window", cmp.Or(d.Name(), shadowDenied), "scope", d.Scope, "limit", d.Limit,
			"tier", event.Tier, "route", event.Route)
	}
}

// shadowDenied is used instead of a window's name if a deny list would have refused.
const shadowDenied = "denied"

// shadowName is the value of HeaderShadow.
func shadowName(would request.Rejection) string {
	if would.Claim == nil {
		return shadowDenied
	}
	name := headers.PolicyName(would.Claim.Told(would.Verdict))
	if would.Upstream {
		return "upstream-" + name
	}
	return name
}
