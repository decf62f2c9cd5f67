package ginlimit

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"

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
//   - nobody signed in: 401. What limiters before this one counted stays counted. WWW-Authenticate
//     is for the middleware that knows the scheme;
//   - the resolver failed: 503, and what was taken is given back;
//   - Redis failed: 503, unless WithFailurePolicy says otherwise;
//   - the request's own deadline has passed: 503, whatever the policy, since nobody waits for it;
//   - the client left while Redis was asked: 499, which nobody sees.
//
// Mount it after the middleware that authenticates. A request that passes several limiters has one
// id in all of them, so two mounts on one scope count it once, and the tighter one decides; a budget
// of its own takes a Scope or WithScope. One round trip for each window that is asked, or one in all
// by WithAtomicWindows.
//
// Where an option is given twice, the last one counts, but WithScope adds. New panics on nil
// arguments and contradictory options.
func New(l *Limiter, r TierResolver, opts ...Option) gin.HandlerFunc {
	mustNotBeNil("New: limiter", l)
	mustNotBeNil("New: resolver", r)
	o := options{tiers: tiers.Default()}
	for _, opt := range opts {
		mustNotBeNil("New: option", opt)
		opt(&o)
	}
	layers := []layer{{l.names, o.tiers}}
	for _, s := range o.scopes {
		names := l.names.withScope(s.name)
		if s.name == "" || slices.ContainsFunc(layers, func(l layer) bool { return l.names == names }) {
			panic("ginlimit: WithScope: scope " + strconv.Quote(s.name) + " is empty or there already")
		}
		layers = append(layers, layer{names, s.tiers})
	}
	atomic := o.atomic || len(o.scopes) > 0
	m := &middleware{
		limiter:  l,
		resolver: r,
		observer: o.observer,
		table:    o.tiers,
		plans:    newPlans(l, layers, atomic),
		failOpen: o.failure.open,
	}
	if m.local = o.failure.local; m.local != nil {
		m.localPlans = newPlans(m.local, layers, atomic)
	}
	return m.handle
}

// middleware is what New resolved once, so that a request computes nothing that is known at start.
type middleware struct {
	limiter  *Limiter
	resolver TierResolver
	observer Observer
	table    *tiers.Store
	plans    plans

	failOpen   bool
	local      *Limiter // of FailLocal, or nil
	localPlans plans
}

func (m *middleware) handle(c *gin.Context) {
	request := requestOf(c)
	ctx := c.Request.Context()

	subject, err := m.resolver.ResolveTier(c)
	switch {
	case errors.Is(err, ErrNoSubject), err == nil && subject.UserID == "":
		// What a limiter before this one counted stays: guessing credentials is not free.
		refuse(c, unauthenticated)
		return
	case err != nil:
		slog.ErrorContext(ctx, "ginlimit: tier lookup failed", "error", err)
		request.giveBackAll(ctx, m.limiter.deadline())
		refuse(c, tierLookupFailed)
		return
	}

	plan := m.plans.of(subject.Tier)
	event := Event{Route: c.FullPath(), Tier: m.knownTier(subject.Tier)}
	if m.limiter.kill.on() {
		event.Outcome, event.Decision = Bypassed, plan.untouched()
		m.pass(c, request, event)
		return
	}

	user, deadline := encodePart(subject.UserID), m.limiter.deadline()
	event.Decision, err = request.decide(ctx, m.limiter, plan, user, deadline)
	if err != nil {
		switch ended(ctx) { // the request itself, which is no failure of Redis
		case context.Canceled:
			request.giveBackAll(ctx, deadline)
			removeLimitHeaders(c.Writer.Header())
			c.AbortWithStatus(statusClientClosedRequest)
			return
		case context.DeadlineExceeded:
			request.giveBackAll(ctx, deadline)
			refuse(c, limiterUnavailable)
			return
		}
		m.storeFailed(ctx, event, err)
		switch {
		case m.failOpen:
			return
		case m.local == nil:
			request.giveBackAll(ctx, deadline)
			refuse(c, limiterUnavailable)
			return
		}
		event.Local = true
		event.Decision, _ = request.decide(ctx, m.local, m.localPlans.of(subject.Tier), user, deadline) // never fails
	}
	if !event.Decision.Allowed {
		event.Outcome = Rejected
		m.observe(ctx, event)
		request.giveBackAll(ctx, deadline)
		reject(c, event.Decision)
		return
	}
	event.Outcome = Admitted
	m.pass(c, request, event)
}

// knownTier is the tier as events name it: one of the table.
func (m *middleware) knownTier(t tiers.Tier) tiers.Tier {
	if _, ok := m.plans.byTier[t]; ok {
		return t
	}
	return m.table.Fallback()
}

func (m *middleware) pass(c *gin.Context, r *request, e Event) {
	m.observe(c.Request.Context(), e)
	if r.tighten(e.Decision) {
		setLimitHeaders(c.Writer.Header(), e.Decision)
	}
}

func (m *middleware) storeFailed(ctx context.Context, e Event, err error) {
	m.limiter.logError(ctx, "ginlimit: Redis could not decide", err)
	e.Outcome, e.Decision, e.Err = StoreError, Decision{}, err
	m.observe(ctx, e)
}

func (m *middleware) observe(ctx context.Context, e Event) {
	if m.observer != nil {
		m.observer.Observe(ctx, e)
	}
}
