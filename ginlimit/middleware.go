package ginlimit

import (
	"slices"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/plan"
	"github.com/gin-tiers/ratelimit/tiers"
)

// New returns the middleware. For each request it asks r for the caller and decides the budgets of the
// caller's tier, shortest window first:
//
//   - admitted: X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Window of the tightest
//     window are set before the handler runs;
//   - rejected: 429 with the same headers, Retry-After and a JSON body. What the request took from
//     other windows, even in limiters before this one, is given back;
//   - on a deny list of a table: 403, without a call to Redis, and what was taken is given back;
//   - nobody signed in: 401. What limiters before this one counted stays counted. WWW-Authenticate
//     is left to the authentication middleware;
//   - the resolver failed: 503, and what was taken is given back;
//   - Redis failed: 503, unless WithFailurePolicy says otherwise. If the request's own deadline is sooner
//     than the limiter's, the decision takes at most four fifths of the time left, so that the policy can
//     still answer;
//   - the request's own deadline passed before the decision: 503 with any policy, since nobody waits for it;
//   - the client left before the decision: 499, which nobody sees, and what was taken is given back.
//
// Mount it after the authentication middleware. A request that passes several limiters, or the same one again
// by Gin's HandleContext, has one id in all of them. So two mounts on one scope count it once, and the
// tighter one decides; for a separate budget use Scope or WithScope. A request that a handler sends to an
// engine itself is a new request. Each window costs one round trip; with WithAtomicWindows one round trip
// decides all.
//
// If an option is given twice, the last one wins; WithScope and WithScopeFor add. New panics on nil arguments
// and contradictory options; if one of two mounts on a scope of a limiter has WithTiers and the other does
// not; and if a table has numbers for tokens, spend or concurrent whose option is missing.
func New(l *Limiter, r TierResolver, opts ...Option) gin.HandlerFunc {
	mustNotBeNil("New: limiter", l)
	mustNotBeNil("New: resolver", r)
	var o options
	for _, opt := range opts {
		mustNotBeNil("New: option", opt)
		opt(&o)
	}
	if o.live != nil {
		if o.tiers != nil {
			panic("ginlimit: New: WithTiers and WithLiveTiers contradict each other")
		}
		o.tiers = o.live.Store()
	}
	l.mounts.add(l.names.Scope, mount{o.tiers != nil, o.bounded})
	if o.tiers == nil {
		o.tiers = tiers.Default()
	}
	layers := []plan.Layer{{Names: l.names, Tiers: o.tiers}}
	for _, s := range o.scopes {
		names := l.names
		names.Scope = s.name
		if s.name == "" || hasScope(layers, s.name) {
			panic("ginlimit: WithScope: scope " + strconv.Quote(s.name) + " is empty or there already")
		}
		l.mounts.add(s.name, mount{true, o.bounded})
		layers = append(layers, plan.Layer{Names: names, Tiers: s.tiers})
	}
	on := budget.Dimensions{Usage: o.estimator != nil, Concurrent: o.concurrency, Bounded: o.bounded}
	mustDecide(layers, on)
	if o.upstream != nil && o.upstream.TokensPerMinute > 0 && o.estimator == nil {
		panic("ginlimit: New: WithUpstream has TokensPerMinute, which nothing estimates; add WithUsage")
	}
	how := plan.Rules{
		Dimensions: on,
		Atomic: o.atomic || len(o.scopes) > 0 || len(o.subjects) > 0 || o.weight != nil ||
			on != budget.Dimensions{},
		Refunds: o.refundOn != nil,
	}
	if o.upstream != nil {
		how.Provider, how.Upstream = o.upstream.Name, o.upstream.budgets
	}
	m := &middleware{resolver: r, engine: engine{
		limiter:  l,
		local:    o.failure.local,
		observer: newObservers(o.observer),
		shadow:   o.shadow,
		failOpen: o.failure.open || o.shadow && o.failure.local == nil,
		lookups:  newLogRate(time.Second),

		estimates: newLogRate(time.Second),
		shadows:   newLogRate(time.Second),
	}, estimator: o.estimator, refundOn: o.refundOn, upstream: o.upstream, weight: o.weight,
		skip: o.skip, body: o.body, dialects: newDialects(o)}
	if m.body == nil {
		m.body = DefaultBody
	}
	m.tables.source = o.live
	m.tables.work = func(s *tiers.Store) (*table, error) {
		return newTable(s, l, m.local, layers, how)
	}
	warnOfFallbacks(layers)
	first, _ := m.tables.work(o.tiers) // its numbers were checked above
	m.tables.current.Store(first)
	m.addSubjects(o, layers, how)
	return m.handle
}

// addSubjects adds the scopes of WithScopeFor to the others.
func (m *middleware) addSubjects(o options, there []plan.Layer, how plan.Rules) {
	l := m.limiter
	how.Upstream = nil
	for _, s := range o.subjects {
		names := l.names
		names.Scope = s.name
		if s.name == "" || hasScope(there, s.name) {
			panic("ginlimit: WithScopeFor: scope " + strconv.Quote(s.name) + " is empty or there already")
		}
		l.mounts.add(s.name, mount{true, o.bounded})
		own := []plan.Layer{{Names: names, Tiers: s.tiers}}
		there = slices.Concat(there, own)
		mustDecide(own, how.Dimensions)
		table, _ := newTable(s.tiers, l, m.local, own, how) // its numbers were checked above
		m.subjects = append(m.subjects, subjectScope{s.name, s.resolver, table})
	}
}

func hasScope(layers []plan.Layer, scope string) bool {
	return slices.ContainsFunc(layers, func(l plan.Layer) bool { return l.Names.Scope == scope })
}

// subjectScope is the scope of a WithScopeFor.
type subjectScope struct {
	name     string
	resolver TierResolver
	table    *table
}

// middleware holds what New worked out once, so that requests need not.
type middleware struct {
	engine
	resolver  TierResolver
	estimator Estimator                 // of WithUsage, or nil
	refundOn  func(c *gin.Context) bool // of WithRefundOn, or nil
	upstream  *Upstream                 // of WithUpstream, or nil
	weight    func(c *gin.Context) (int, error)
	subjects  []subjectScope
	skip      func(c *gin.Context) bool // of WithSkip, or nil
	body      Body
	dialects  dialects
}

// handle decides, and then answers or runs the handler.
func (m *middleware) handle(c *gin.Context) {
	if isPreflight(c.Request) || m.skip != nil && m.skip(c) {
		return
	}
	r, first := requestOf(c)
	m.dialects.expose(c.Writer.Header())
	r.speak(&m.dialects)
	if first {
		defer r.release(c.Request.Context())
	}
	next := m.answer(c, r)
	r.answered = true
	if !next {
		r.after.forget() // the answer is a limiter's, not the handler's
		return
	}
	r.sendOnce()
	if first {
		r.serve(c.Request.Context())
	}
}

// answer answers the request, or reports that its handler must.
func (m *middleware) answer(c *gin.Context, r *requestOn) (next bool) {
	ctx := c.Request.Context()
	subject, err := m.resolver.ResolveTier(c)
	switch {
	case m.shadow && isNobody(subject, err):
		return true
	case isNobody(subject, err):
		// What a limiter before this one counted stays counted, so that guessing credentials costs something.
		return m.refuse(c, r, unauthenticated)
	case err != nil:
		return m.failLookup(c, r, err)
	}

	id := subjectID(c, subject)
	a := asked{id: id, user: m.limiter.names.Owner(id), tier: subject.Tier, route: c.FullPath()}
	if m.estimator != nil {
		a.estimate = func(most Usage) (Usage, error) { return estimate(m.estimator, c, most) }
	}
	if m.weight != nil {
		a.weigh = func() (int, error) { return m.weight(c) }
	}
	if a.others, err = m.others(c); err != nil {
		return m.failLookup(c, r, err)
	}
	found := len(r.Found)
	answer, ending := m.decide(ctx, &r.Request, &a)
	if m.dialects.silent() {
		r.Found = r.Found[:min(found, len(r.Found))]
	}
	switch ending {
	case gone:
		return r.abandon()
	case unavailable:
		return m.refuse(c, r, limiterUnavailable)
	case invalid:
		return m.refuse(c, r, invalidRequest)
	case denied:
		return m.refuse(c, r, userDenied)
	case crowded:
		return m.refuse(c, r, upstreamFull(decisionOf(answer.rejection.Claim, answer.rejection.Verdict)))
	case tooLarge:
		return m.refuse(c, r, exceedsBudget(decisionOf(answer.rejection.Claim, answer.rejection.Verdict)))
	case refused:
		return m.reject(c, r, answer.rejection)
	}
	if !m.dialects.silent() {
		r.tell(c.Writer.Header(), nil, m.limiter.kill.now)
		if ending == shadowed {
			c.Header(HeaderShadow, shadowName(answer.rejection))
		}
	}
	if m.observer.settled != nil && answer.reserved != (Usage{}) {
		after := r.afterwards()
		after.reservations = append(after.reservations, reservation{m.observer.settled, Settlement{
			Route: a.route, Tier: answer.tier, Reserved: answer.reserved, Used: answer.reserved,
		}})
	}
	if m.refundOn != nil || m.upstream != nil {
		if after := r.afterwards(); !slices.Contains(after.passed, m) {
			after.passed = append(after.passed, m)
		}
	}
	return true
}

// others resolves the subjects beside the user.
func (m *middleware) others(c *gin.Context) (all []other, err error) {
	for _, s := range m.subjects {
		subject, err := s.resolver.ResolveTier(c)
		switch {
		case isNobody(subject, err):
		case err != nil:
			return nil, err
		default:
			id := subjectID(c, subject)
			all = append(all, other{id, m.limiter.names.Owner(id), subject.Tier, s.name, s.table})
		}
	}
	return all, nil
}

// failLookup answers a request whose subject could not be resolved, or lets it pass in shadow mode.
func (m *middleware) failLookup(c *gin.Context, r *requestOn, err error) (next bool) {
	switch m.lookupFailed(c.Request.Context(), &r.Request, err) {
	case pass:
		return true
	case gone:
		return r.abandon()
	}
	return m.refuse(c, r, tierLookupFailed)
}

// estimate calls an estimator, with bounds if it accepts them.
func estimate(e Estimator, c *gin.Context, most Usage) (Usage, error) {
	if within, ok := e.(interface {
		EstimateWithin(c *gin.Context, most Usage) (Usage, error)
	}); ok {
		return within.EstimateWithin(c, most)
	}
	return e.Estimate(c)
}
