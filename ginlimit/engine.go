package ginlimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/plan"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/request"
	"github.com/gin-tiers/ratelimit/tiers"
)

// engine decides the requests of one mount of the middleware: which budgets, and what happens when Redis
// cannot decide. It knows nothing of Gin.
type engine struct {
	limiter  *Limiter
	tables   tables
	observer observers

	shadow   bool // of WithShadow: decides, and rejects nothing
	failOpen bool
	local    *Limiter // of FailLocal, or nil

	unknownTiers seenTiers
	lookups      *logRate // of errors of the resolver
	estimates    *logRate // of errors of the estimator
	shadows      *logRate // of what WithShadow did not reject
}

// ending is how a decision ends for the client.
type ending int

const (
	pass        ending = iota // to the handler, with the headers of the decision, if there is one
	refused                   // 429
	unavailable               // 503: Redis could not decide, or too late
	denied                    // 403: on a deny list
	gone                      // 499: nobody waits for the answer
	crowded                   // 503: the provider's cap is reached
	tooLarge                  // 400: the request is larger than a whole budget
	invalid                   // 400: the estimator has refused the request
	shadowed                  // to the handler, since WithShadow rejects nothing
)

// answer is the result of a decision.
type answer struct {
	rejection request.Rejection // if the request was rejected, or would have been
	tier      tiers.Tier
	reserved  Usage // of a request that passes
}

// decide decides a request. A request that does not pass leaves nothing counted.
func (e *engine) decide(ctx context.Context, r *request.Request, a *asked) (answer, ending) {
	event := Event{Route: a.route}
	table := e.tables.now(ctx)
	p, known := a.planOn(e.limiter, table, ownPlans)
	if event.Tier = a.tier; !known {
		event.Tier, event.UnknownTier = e.fallbackFor(ctx, table, "", a.tier)
	}
	for _, o := range a.others {
		if !o.table.own.Knows(o.tier) {
			_, unknown := e.fallbackFor(ctx, o.table, o.scope, o.tier)
			event.UnknownTier = event.UnknownTier || unknown
		}
	}
	if e.limiter.kill.on() {
		r.Found = append(r.Found, request.Finding{Plan: p, Bypassed: true})
		event.Outcome = Bypassed
		e.observePassed(ctx, &event, r)
		return answer{}, pass
	}
	if a.denied(table) {
		return answer{}, e.deny(ctx, r, event)
	}
	costs, err := e.costs(p, a)
	if err != nil && e.shadow && request.Ended(ctx) != context.Canceled {
		if request.Ended(ctx) == nil {
			e.logEstimate(ctx, err)
		}
		return answer{}, pass
	}
	if err != nil {
		return answer{}, e.estimateFailed(ctx, r, err)
	}
	if costs.Weight == 0 {
		p = p.Weightless()
	}

	deadline, before := e.limiter.counter.Deadline(ctx, request.Shared), r.Held()
	began := e.observer.begin()
	rejected, err := r.Decide(ctx, &e.limiter.counter, p, a.user, costs, deadline)
	e.observer.store(ctx, a.route, began, err)
	switch request.Ended(ctx) { // the end of the request itself is no failure of Redis
	case nil:
	case context.Canceled:
		r.Leave(ctx, &e.limiter.counter)
		return answer{}, gone
	default:
		if err != nil && e.shadow {
			return answer{}, pass
		}
		if err != nil {
			r.Leave(ctx, &e.limiter.counter)
			return answer{}, unavailable
		}
	}
	if err != nil {
		e.limiter.logError(ctx, "ginlimit: Redis could not decide", err, "policy", e.policy())
		event.Outcome, event.Err, event.Policy = StoreError, err, e.policy()
		e.observe(ctx, event, Decision{})
		event.Err, event.Policy = nil, ""
		switch {
		case e.failOpen:
			return answer{}, pass
		case e.local == nil:
			r.GiveBackAll(ctx, deadline)
			return answer{}, unavailable
		}
		event.Local = true
		// A memory limiter never fails.
		local, _ := a.planOn(e.local, table, localPlans)
		if costs.Weight == 0 {
			local = local.Weightless()
		}
		costs = p.Clamp(costs, local)
		rejected, _ = r.Decide(ctx, &e.local.counter, local, a.user, costs, time.Time{})
	}
	if rejected.Claim != nil {
		return answer{rejection: rejected}, e.endRejected(ctx, r, event, rejected, before, deadline)
	}
	event.Outcome = Admitted
	e.observePassed(ctx, &event, r)
	return answer{tier: event.Tier, reserved: Usage{costs.Tokens, costs.Spend}}, pass
}

// endRejected returns how a rejected request ends, and gives back what it has taken so far. In shadow mode
// that is only what this mount took: the holdings from index before on.
func (e *engine) endRejected(
	ctx context.Context, r *request.Request, event Event, rejected request.Rejection,
	before int, deadline time.Time,
) ending {
	d := decisionOf(rejected.Claim, rejected.Verdict)
	if e.shadow {
		event.Outcome = ShadowRejected
		e.observe(ctx, event, d)
		e.logShadow(ctx, event, d)
		r.GiveBack(ctx, before, deadline)
		r.Found[len(r.Found)-1].GivenBack = true
		return shadowed
	}
	event.Outcome = Rejected
	if rejected.Upstream {
		event.Outcome = UpstreamFull
	}
	e.observe(ctx, event, d)
	r.GiveBackAll(ctx, deadline)
	switch {
	case rejected.Verdict.TooLarge:
		return tooLarge
	case rejected.Upstream:
		return crowded
	}
	return refused
}

// deny returns how a request of a denied subject ends, and gives back what it has taken so far.
func (e *engine) deny(ctx context.Context, r *request.Request, event Event) ending {
	if e.shadow {
		event.Outcome = ShadowRejected
		e.observe(ctx, event, Decision{})
		e.logShadow(ctx, event, Decision{})
		return shadowed
	}
	event.Outcome = Denied
	e.observe(ctx, event, Decision{})
	r.GiveBackAll(ctx, e.limiter.counter.Deadline(ctx, request.Shared))
	return denied
}

// maxWeight bounds the weight of one request: each unit of it is an entry of a log.
const maxWeight = 1000

// costs are what the request takes.
func (e *engine) costs(p plan.Plan, a *asked) (c plan.Costs, err error) {
	c.Weight = 1
	if a.weigh != nil {
		if c.Weight, err = a.weigh(); err != nil {
			return c, err
		}
		if c.Weight < 0 || c.Weight > maxWeight {
			return c, fmt.Errorf("weight %d is not from 0 to %d", c.Weight, maxWeight)
		}
	}
	if a.estimate != nil {
		if most, ok := p.Estimated(); ok {
			u, err := a.estimate(Usage{most.Tokens, most.Spend})
			if err != nil {
				return c, err
			}
			u = u.bounded()
			c.Tokens, c.Spend = u.Tokens, u.Spend
		}
	}
	return c, nil
}

// estimateFailed returns how a request ends if its usage could not be estimated, and gives back what it has
// taken so far. If the request is over, that is no failure of the estimator.
func (e *engine) estimateFailed(ctx context.Context, r *request.Request, err error) ending {
	switch request.Ended(ctx) {
	case nil:
	case context.Canceled:
		r.Leave(ctx, &e.limiter.counter)
		return gone
	default:
		r.Leave(ctx, &e.limiter.counter)
		return unavailable
	}
	e.logEstimate(ctx, err)
	r.GiveBackAll(ctx, e.limiter.counter.Deadline(ctx, request.Shared))
	return invalid
}

func (e *engine) logEstimate(ctx context.Context, err error) {
	if e.estimates.allow(time.Now()) {
		slog.WarnContext(ctx, "ginlimit: the usage of a request could not be estimated", "error", err,
			"refused", !e.shadow)
	}
}

// lookupFailed returns how a request ends if its subject could not be resolved, and gives back what it has
// taken so far. If the look-up failed because the request is over, that is no failure.
func (e *engine) lookupFailed(ctx context.Context, r *request.Request, err error) ending {
	over := request.Ended(ctx)
	if over == context.Canceled || over != nil && (errors.Is(err, over) || errors.Is(err, ctx.Err())) {
		if e.shadow && over != context.Canceled {
			return pass
		}
		r.Leave(ctx, &e.limiter.counter)
		if over == context.Canceled {
			return gone
		}
		return unavailable
	}
	if shouldLog(err, e.lookups) {
		slog.ErrorContext(ctx, "ginlimit: tier lookup failed", "error", err)
	}
	if e.shadow {
		return pass
	}
	r.GiveBackAll(ctx, e.limiter.counter.Deadline(ctx, request.Shared))
	return unavailable
}

func (e *engine) observe(ctx context.Context, event Event, d Decision) {
	if e.observer.each != nil {
		event.Decision = d
		e.observer.each.Observe(ctx, event)
	}
}

// observePassed reports a request that passes, with the tightest budget of the last finding.
func (e *engine) observePassed(ctx context.Context, event *Event, r *request.Request) {
	if e.observer.each != nil {
		d := Decision{Allowed: true} // if every budget is unlimited
		tightest := request.TightestOf(r.Found[len(r.Found)-1:])
		if claim, v := tightest.First(); claim != nil {
			d = decisionOf(claim, v)
		}
		e.observe(ctx, *event, d)
	}
}

// policy is the failure policy, as events name it.
func (e *engine) policy() string {
	switch {
	case e.failOpen:
		return PolicyOpen
	case e.local != nil:
		return PolicyLocal
	}
	return PolicyClosed
}
