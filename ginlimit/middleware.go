package ginlimit

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/tiers"
)

// New returns the middleware. For each request it asks r who is calling and decides the minute and
// the day of that user's tier, shortest window first:
//
//   - admitted: X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Window of the tightest
//     window are set before the handler runs;
//   - rejected: 429 with the same headers, Retry-After and a JSON body. What the request took from
//     other windows, also in limiters before this one, is given back;
//   - nobody signed in: 401; the resolver or Redis failed: 503 (see WithFailurePolicy).
//
// Mount it after the middleware that authenticates. A request that passes several limiters has one
// id in all of them, so mounting the same scope twice counts once. One round trip for each window
// that is asked, or one in all by WithAtomicWindows.
//
// New panics on nil arguments and contradictory options.
func New(l *Limiter, r TierResolver, opts ...Option) gin.HandlerFunc {
	mustNotBeNil("New: limiter", l)
	mustNotBeNil("New: resolver", r)
	o := options{tiers: tiers.Default()}
	for _, opt := range opts {
		mustNotBeNil("New: option", opt)
		opt(&o)
	}
	m := &middleware{
		limiter:  l,
		resolver: r,
		failure:  o.failure,
		observer: o.observer,
		fallback: o.tiers.Fallback(),
		plans:    make(map[tiers.Tier]plan),
		logged:   throttle{every: time.Second, now: time.Now},
	}
	layers := []layer{{l.names, o.tiers}}
	for _, s := range o.scopes {
		names := l.names.withScope(s.name)
		for _, other := range append(layers, layer{names: l.names.withScope("")}) {
			if names == other.names {
				panic("ginlimit: WithScope: scope " + s.name + " is empty or there already")
			}
		}
		layers = append(layers, layer{names, s.tiers})
	}
	atomic := o.atomic || len(o.scopes) > 0
	for _, layer := range layers {
		for _, t := range layer.tiers.Tiers() {
			m.plans[t] = newPlan(t, layers, atomic)
		}
	}
	m.unknown = newPlan("", layers, atomic)
	return m.handle
}

// middleware is what New resolved once, so that a request computes nothing that is known at start.
type middleware struct {
	limiter  *Limiter
	resolver TierResolver
	failure  FailurePolicy
	observer Observer
	fallback tiers.Tier
	plans    map[tiers.Tier]plan // of every tier that a table names
	unknown  plan                // of every other tier
	logged   throttle            // of store errors
}

func (m *middleware) handle(c *gin.Context) {
	request := requestOf(c)
	ctx := c.Request.Context()

	subject, err := m.resolver.ResolveTier(c)
	switch {
	case errors.Is(err, ErrNoSubject), err == nil && subject.UserID == "":
		refuse(c, unauthenticated)
		return
	case err != nil:
		slog.ErrorContext(ctx, "ginlimit: tier lookup failed", "error", err)
		request.giveBackAll(ctx)
		refuse(c, tierLookupFailed)
		return
	}

	plan, tier := m.planOf(subject.Tier)
	event := Event{Route: c.FullPath(), Tier: tier}
	if m.limiter.kill.on() {
		event.Outcome, event.Decision = Bypassed, plan.untouched()
		m.pass(c, request, event)
		return
	}

	prefix := m.limiter.names.prefix(subject.UserID)
	event.Decision, err = request.decide(ctx, m.limiter.store, plan, prefix)
	if err != nil {
		if ctx.Err() == context.Canceled { // the client left; that is no failure of Redis
			request.giveBackAll(ctx)
			c.AbortWithStatus(statusClientClosedRequest)
			return
		}
		m.storeFailed(ctx, event, err)
		switch {
		case m.failure.open:
			return
		case m.failure.local == nil:
			request.giveBackAll(ctx)
			refuse(c, limiterUnavailable)
			return
		}
		event.Local = true
		event.Decision, _ = request.decide(ctx, m.failure.local.store, plan, prefix) // memory never fails
	}
	if !event.Decision.Allowed {
		event.Outcome = Rejected
		m.observe(ctx, event)
		request.giveBackAll(ctx)
		reject(c, event.Decision)
		return
	}
	event.Outcome = Admitted
	m.pass(c, request, event)
}

// planOf returns the plan of a tier, and the tier's name in events: an unknown one is the fallback.
func (m *middleware) planOf(t tiers.Tier) (plan, tiers.Tier) {
	if p, ok := m.plans[t]; ok {
		return p, t
	}
	return m.unknown, m.fallback
}

func (m *middleware) pass(c *gin.Context, r *request, e Event) {
	m.observe(c.Request.Context(), e)
	if r.tighten(e.Decision) {
		setLimitHeaders(c.Writer.Header(), e.Decision)
	}
}

func (m *middleware) storeFailed(ctx context.Context, e Event, err error) {
	if m.logged.allow() {
		slog.ErrorContext(ctx, "ginlimit: Redis could not decide", "error", err)
	}
	e.Outcome, e.Decision, e.Err = StoreError, Decision{}, err
	m.observe(ctx, e)
}

func (m *middleware) observe(ctx context.Context, e Event) {
	if m.observer != nil {
		m.observer.Observe(ctx, e)
	}
}
