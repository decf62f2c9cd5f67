package ginlimit

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/gin-tiers/ratelimit/ginlimit/headers"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/request"
)

// WithShadow decides, counts, observes and logs as ever, but rejects nothing: to see what limits would do
// before they do it. A request that would have been rejected passes with X-RateLimit-Shadow, the name of the
// window ("minute", "images:day") or "denied", is observed as ShadowRejected, takes nothing of this mount's
// budgets, and is logged, at most one a second. So pass a caller without a subject, a failed look-up or
// estimate, and a Redis that cannot decide, unless FailLocal does. Other mounts decide as ever. A mount of
// headers.None does not set the header.
func WithShadow() Option { return func(o *options) { o.shadow = true } }

func (e *engine) logShadow(ctx context.Context, event Event, d Decision) {
	if e.shadows.allow(time.Now()) {
		slog.InfoContext(ctx, "ginlimit: a request would have been rejected",
			"window", cmp.Or(d.Name(), shadowDenied), "scope", d.Scope, "limit", d.Limit,
			"tier", event.Tier, "route", event.Route)
	}
}

// shadowDenied stands for the name of a window where a deny list would have refused.
const shadowDenied = "denied"

// shadowName is the value of HeaderShadow.
func shadowName(would request.Rejection) string {
	if would.Claim == nil {
		return shadowDenied
	}
	return headers.PolicyName(would.Claim.Told(would.Verdict))
}
