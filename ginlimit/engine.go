package ginlimit

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/gin-tiers/ratelimit/tiers"
)

// engine decides requests as one mount of the middleware wants it: which budgets, and what happens when
// Redis cannot decide. It knows nothing of Gin.
type engine struct {
	limiter  *Limiter
	table    *tiers.Store
	plans    plans
	observer Observer

	failOpen   bool
	local      *Limiter // of FailLocal, or nil
	localPlans plans

	unknownTiers seenTiers
	lookups      *logRate // of errors of the resolver
}

// ending is how a decision ends for the client.
type ending int

const (
	pass        ending = iota // to the handler, with the headers of the decision, if there is one
	rejected                  // 429
	unavailable               // 503: Redis could not decide, or too late
	left                      // 499: nobody waits for the answer
)

// decide decides a request of a subject, whose encoded id is user. Of a request that does not pass nothing
// stays counted.
func (e *engine) decide(ctx context.Context, r *request, user string, tier tiers.Tier, route string) (tightest, ending) {
	event := Event{Route: route}
	event.Tier, event.UnknownTier = e.knownTier(ctx, tier)
	plan := e.plans.of(tier)
	if e.limiter.kill.on() {
		full := plan.full()
		event.Outcome = Bypassed
		e.observe(ctx, event, full)
		return full, pass
	}

	deadline := e.limiter.deadline(ctx, shared)
	found, err := r.decide(ctx, e.limiter, plan, user, deadline)
	switch ended(ctx) { // the request itself, which is no failure of Redis
	case nil:
	case context.Canceled:
		r.leave(ctx, e.limiter)
		return tightest{}, left
	default:
		if err != nil {
			r.leave(ctx, e.limiter)
			return tightest{}, unavailable
		}
	}
	if err != nil {
		e.limiter.logError(ctx, "ginlimit: Redis could not decide", err)
		event.Outcome, event.Err = StoreError, err
		e.observe(ctx, event, tightest{})
		event.Err = nil
		switch {
		case e.failOpen:
			return tightest{}, pass
		case e.local == nil:
			r.giveBackAll(ctx, deadline)
			return tightest{}, unavailable
		}
		event.Local = true
		found, _ = r.decide(ctx, e.local, e.localPlans.of(tier), user, time.Time{}) // never fails
	}
	if found.known && !found.Allowed {
		event.Outcome = Rejected
		e.observe(ctx, event, found)
		r.giveBackAll(ctx, deadline)
		return found, rejected
	}
	event.Outcome = Admitted
	found.Allowed = true // also where every budget is unlimited
	e.observe(ctx, event, found)
	return found, pass
}

// lookupFailed says how a request ends whose subject could not be found out, and gives back what it has
// taken so far. A look-up that failed since the request is over is no failure.
func (e *engine) lookupFailed(ctx context.Context, r *request, err error) ending {
	over := ended(ctx)
	if over != nil && (errors.Is(err, over) || errors.Is(err, ctx.Err())) {
		r.leave(ctx, e.limiter)
		if over == context.Canceled {
			return left
		}
		return unavailable
	}
	if e.lookups.allow(time.Now()) {
		slog.ErrorContext(ctx, "ginlimit: tier lookup failed", "error", err)
	}
	r.giveBackAll(ctx, e.limiter.deadline(ctx, shared))
	return unavailable
}

func (e *engine) observe(ctx context.Context, event Event, t tightest) {
	if e.observer != nil {
		event.Decision = t.Decision
		e.observer.Observe(ctx, event)
	}
}
