package ginlimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/gin-tiers/ratelimit/tiers"
)

// engine decides requests as one mount of the middleware wants it: which budgets, and what happens when
// Redis cannot decide. It knows nothing of Gin.
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

// asked is a request as an engine is asked for it.
type asked struct {
	id       string // of the user, as tables list it
	user     string // the same, encoded
	tier     tiers.Tier
	route    string
	estimate func(most Usage) (Usage, error) // of WithUsage, or nil; asked once, where a budget needs it
	weigh    func() (int, error)             // of WithWeight, or nil
	others   []other                         // of WithScopeFor
}

// other is another subject than the user, whose budgets the request must meet too.
type other struct {
	id    string // as its table lists it
	owner string // the same, encoded
	tier  tiers.Tier
	table *table
}

// with adds to the user's plan what the other subjects must meet.
func (a *asked) with(p plan, l *Limiter, plansOf func(*table) plans) plan {
	for _, o := range a.others {
		theirs := o.table.planOf(l, plansOf(o.table), o.id, o.tier)
		p = p.with(theirs, o.owner, !l.names.HashTags)
	}
	return p
}

// denied tells whether the user or another subject is refused.
func (a *asked) denied(t *table) bool {
	return t.denies(a.id) || slices.ContainsFunc(a.others, func(o other) bool { return o.table.denies(o.id) })
}

func ownPlans(t *table) plans   { return t.own }
func localPlans(t *table) plans { return t.local }

// answer is what a decision has found.
type answer struct {
	rejection rejection // where the request was rejected, or would have been
	tier      tiers.Tier
	reserved  Usage // of a request that passes
}

// decide decides a request. Of one that does not pass nothing stays counted.
func (e *engine) decide(ctx context.Context, r *request, a *asked) (answer, ending) {
	event := Event{Route: a.route}
	table := e.tables.now(ctx)
	var plan plan
	plan, event.Tier, event.UnknownTier = e.planOf(ctx, table, a)
	plan = a.with(plan, e.limiter, ownPlans)
	if e.limiter.kill.on() {
		r.found = append(r.found, finding{plan: plan, bypassed: true})
		event.Outcome = Bypassed
		e.observePassed(ctx, &event, r)
		return answer{}, pass
	}
	if a.denied(table) {
		return answer{}, e.deny(ctx, r, event)
	}
	costs, err := e.costs(plan, a)
	if err != nil && e.shadow && ended(ctx) == nil {
		e.logEstimate(ctx, err)
		return answer{}, pass
	}
	if err != nil {
		return answer{}, e.estimateFailed(ctx, r, err)
	}
	if costs.weight == 0 {
		plan = plan.weightless()
	}

	deadline, before := e.limiter.deadline(ctx, shared), len(r.held)
	began := e.observer.begin()
	rejected, err := r.decide(ctx, e.limiter, plan, a.user, costs, deadline)
	e.observer.store(ctx, a.route, began, err)
	switch ended(ctx) { // the request itself, which is no failure of Redis
	case nil:
	case context.Canceled:
		r.leave(ctx, e.limiter)
		return answer{}, gone
	default:
		if err != nil && e.shadow {
			return answer{}, pass
		}
		if err != nil {
			r.leave(ctx, e.limiter)
			return answer{}, unavailable
		}
	}
	if err != nil {
		e.limiter.logError(ctx, "ginlimit: Redis could not decide", err)
		event.Outcome, event.Err, event.Policy = StoreError, err, e.policy()
		e.observe(ctx, event, Decision{})
		event.Err, event.Policy = nil, ""
		switch {
		case e.failOpen:
			return answer{}, pass
		case e.local == nil:
			r.giveBackAll(ctx, deadline)
			return answer{}, unavailable
		}
		event.Local = true
		// A memory limiter never fails.
		plan = a.with(table.planOf(e.local, table.local, a.id, a.tier), e.local, localPlans)
		if costs.weight == 0 {
			plan = plan.weightless()
		}
		rejected, _ = r.decide(ctx, e.local, plan, a.user, costs, time.Time{})
	}
	if rejected.claim != nil && e.shadow {
		event.Outcome = ShadowRejected
		e.observe(ctx, event, rejected.decision())
		e.logShadow(ctx, event, rejected.decision())
		r.giveBack(ctx, before, deadline)
		r.found[len(r.found)-1].givenBack = true
		return answer{rejection: rejected}, shadowed
	}
	if rejected.claim != nil {
		event.Outcome = Rejected
		if rejected.upstream {
			event.Outcome = UpstreamFull
		}
		e.observe(ctx, event, rejected.decision())
		r.giveBackAll(ctx, deadline)
		switch {
		case rejected.verdict.TooLarge:
			return answer{rejection: rejected}, tooLarge
		case rejected.upstream:
			return answer{rejection: rejected}, crowded
		}
		return answer{rejection: rejected}, refused
	}
	event.Outcome = Admitted
	e.observePassed(ctx, &event, r)
	return answer{tier: event.Tier, reserved: costs.Usage}, pass
}

// deny says how a request ends whose subject is on a deny list, and gives back what it has taken so far.
func (e *engine) deny(ctx context.Context, r *request, event Event) ending {
	if e.shadow {
		event.Outcome = ShadowRejected
		e.observe(ctx, event, Decision{})
		e.logShadow(ctx, event, Decision{})
		return pass
	}
	event.Outcome = Denied
	e.observe(ctx, event, Decision{})
	r.giveBackAll(ctx, e.limiter.deadline(ctx, shared))
	return denied
}

// maxWeight bounds what one request can cost: each part of it is an entry of a log.
const maxWeight = 1000

// costs are what the request takes.
func (e *engine) costs(p plan, a *asked) (c costs, err error) {
	c.weight = 1
	if a.weigh != nil {
		if c.weight, err = a.weigh(); err != nil {
			return c, err
		}
		if c.weight < 0 || c.weight > maxWeight {
			return c, fmt.Errorf("weight %d is not from 0 to %d", c.weight, maxWeight)
		}
	}
	if a.estimate != nil {
		if most, ok := p.estimated(); ok {
			if c.Usage, err = a.estimate(most); err != nil {
				return c, err
			}
			c.Usage = c.Usage.bounded()
		}
	}
	return c, nil
}

// estimateFailed says how a request ends whose usage could not be estimated, and gives back what it has taken
// so far.
func (e *engine) estimateFailed(ctx context.Context, r *request, err error) ending {
	if ended(ctx) == context.Canceled {
		r.leave(ctx, e.limiter)
		return gone
	}
	e.logEstimate(ctx, err)
	r.giveBackAll(ctx, e.limiter.deadline(ctx, shared))
	return invalid
}

func (e *engine) logEstimate(ctx context.Context, err error) {
	if e.estimates.allow(time.Now()) {
		slog.WarnContext(ctx, "ginlimit: what a request takes could not be told", "error", err,
			"refused", !e.shadow)
	}
}

// lookupFailed says how a request ends whose subject could not be found out, and gives back what it has
// taken so far. A look-up that failed since the request is over is no failure.
func (e *engine) lookupFailed(ctx context.Context, r *request, err error) ending {
	over := ended(ctx)
	if over != nil && (errors.Is(err, over) || errors.Is(err, ctx.Err())) {
		r.leave(ctx, e.limiter)
		if over == context.Canceled {
			return gone
		}
		if e.shadow {
			return pass
		}
		return unavailable
	}
	if shouldLog(err, e.lookups) {
		slog.ErrorContext(ctx, "ginlimit: tier lookup failed", "error", err)
	}
	if e.shadow {
		return pass
	}
	r.giveBackAll(ctx, e.limiter.deadline(ctx, shared))
	return unavailable
}

func (e *engine) observe(ctx context.Context, event Event, d Decision) {
	if e.observer.each != nil {
		event.Decision = d
		e.observer.each.Observe(ctx, event)
	}
}

// observePassed tells of a request that passes, with the tightest of the budgets that were found last.
func (e *engine) observePassed(ctx context.Context, event *Event, r *request) {
	if e.observer.each != nil {
		tightest := tightestOf(r.found[len(r.found)-1:]).first()
		tightest.Allowed = true // also where every budget is unlimited
		e.observe(ctx, *event, tightest)
	}
}

// policy is what happens to a request that Redis could not decide, as events name it.
func (e *engine) policy() string {
	switch {
	case e.failOpen:
		return PolicyOpen
	case e.local != nil:
		return PolicyLocal
	}
	return PolicyClosed
}
