package ginlimit

import (
	"context"
	"log/slog"
	"time"
)

// WithShadow decides, counts, observes and logs as ever, but rejects nothing: to see what limits would do
// before they do it. A request that would have been rejected passes with X-RateLimit-Shadow, the name of the
// window ("minute", "images:day"), is observed as ShadowRejected, takes nothing of this mount's budgets, and
// is logged, at most one a second. So pass a caller without a subject, a failed look-up or estimate, and a
// Redis that cannot decide, unless FailLocal does. Other mounts decide as ever.
func WithShadow() Option { return func(o *options) { o.shadow = true } }

func (e *engine) logShadow(ctx context.Context, event Event, d Decision) {
	if e.shadows.allow(time.Now()) {
		slog.InfoContext(ctx, "ginlimit: a request would have been rejected", "window", d.Name(),
			"scope", d.Scope, "limit", d.Limit, "tier", event.Tier, "route", event.Route)
	}
}
