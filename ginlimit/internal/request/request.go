// Package request takes one request through the budgets of limiters: what it calls, holds and gives back. It
// knows nothing of HTTP.
package request

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/plan"
)

// Request is one HTTP request on its way through one limiter or several.
type Request struct {
	id       string    // in every window
	Found    []Finding // by all limiters that decided
	held     []holding
	doubtful []holding // of calls that failed, but may have been counted

	// Most requests pass one limiter, in one call on two windows. This is room for that, in the same allocation.
	heldByOne   [1]holding
	foundByOne  [1]Finding
	firstClaims [2]budget.Claim
}

// Init gives a zero Request its id.
func (r *Request) Init() {
	r.id = newID()
	r.held = r.heldByOne[:0]
	r.Found = r.foundByOne[:0]
}

// Decide decides the plan's steps in turn and stops at the first rejection or error. It returns the
// rejection, if there is one, and adds its findings. What was taken stays with the request; but after an
// error this limiter's part is given back, because another limiter may decide now.
func (r *Request) Decide(
	ctx context.Context, l *Counter, p plan.Plan, user string, costs plan.Costs, deadline time.Time,
) (rejected Rejection, err error) {
	before := len(r.held)
	r.Found = append(r.Found, Finding{Plan: p, Costs: costs})
	found := &r.Found[len(r.Found)-1]
	until := deadline
	if before > 0 || len(p) > 1 {
		until = lessReserve(deadline)
	}
	waiting, cancel := l.Bounded(ctx, until)
	defer cancel()
	store := l.Store
	if before > 0 {
		store = l.Direct // it may be a repeat on the scope of an earlier limiter, which a full window admits
	}
	for i := range p {
		rejected, err = r.take(waiting, l, store, &p[i], user, found)
		if err != nil {
			r.GiveBack(ctx, before, deadline)
			r.Found = r.Found[:len(r.Found)-1]
			return Rejection{}, err
		}
		if rejected.Claim != nil {
			break
		}
	}
	return rejected, nil
}

// Rejection is the decision that rejected a request, if one did.
type Rejection struct {
	Claim    *plan.Claim // nil: there was none
	Verdict  budget.Verdict
	Upstream bool // it was the provider's cap
}

// take decides one step. It returns the rejection, if there is one, and adds all verdicts to found.
func (r *Request) take(
	ctx context.Context, l *Counter, store budget.Store, s *plan.Step, user string, found *Finding,
) (rejected Rejection, err error) {
	var claims []budget.Claim
	if r.firstClaims[0].Key == "" { // that room is free
		claims = r.firstClaims[:0]
	}
	claims = s.Of(user, &found.Costs, claims)
	fresh, again := r.divide(l, s, user, claims)
	var peeked []budget.Verdict // of again
	if len(again) > 0 {
		if peeked, err = l.Direct.Peek(ctx, again); err != nil {
			return Rejection{}, err
		}
	}
	verdicts, at, err := store.Admit(ctx, r.id, fresh)
	taken := holding{l, at, fresh}
	if err != nil {
		taken.at = 0
		r.doubtful = append(r.doubtful, taken)
		return Rejection{}, err
	}
	if verdicts[len(verdicts)-1].Allowed {
		r.hold(taken)
	}
	if len(again) > 0 || len(fresh) != len(claims) {
		verdicts = inOrder(claims, fresh, verdicts, again, peeked)
	}
	found.add(verdicts)
	for i, v := range verdicts {
		claim := claims[i]
		if v.Allowed && v.Used > claim.Limit && claim.Limit != budget.NoLimit && claim.Unit != budget.Open {
			if v, err = l.retake(ctx, r.id, claim, v); err != nil {
				return Rejection{}, err
			}
			found.Verdicts[len(found.Verdicts)-len(verdicts)+i] = v
		}
		if !v.Allowed {
			return Rejection{&s.Claims[i], v, s.Upstream}, nil
		}
	}
	return Rejection{}, nil
}

// divide splits a step's claims into those to be admitted, and those that an earlier limiter has taken. A
// store recognizes a repeat by its lease. If a step shares its lease with that limiter, but is not a repeat
// of the whole, it gets a lease of its own. Logs recognize repeats themselves.
func (r *Request) divide(
	l *Counter,
	s *plan.Step,
	user string,
	claims []budget.Claim,
) (fresh, again []budget.Claim) {
	if len(r.held) == 0 {
		return claims, nil
	}
	held, sums, leases := 0, false, false
	for _, c := range claims {
		switch known := r.holds(l, c.Key); {
		case known && c.Form() != budget.Log:
			again = append(again, c)
			fallthrough
		case known:
			held++
		default:
			sums, leases = sums || c.Form() == budget.Sum, leases || c.Form() == budget.Lease
		}
	}
	if held == 0 || held == len(claims) {
		return claims, nil
	}
	fresh = make([]budget.Claim, 0, len(claims)+1)
	for _, c := range claims {
		if c.Form() == budget.Log || !r.holds(l, c.Key) {
			fresh = append(fresh, c)
		}
	}
	if sums && !leases {
		remembers := budget.Budget{Dimension: budget.Dimension{Unit: budget.Concurrent}, Limit: budget.NoLimit}
		fresh = append(fresh, budget.Claim{Key: s.LaterLease(user, len(r.held)+1), Budget: remembers})
	}
	return fresh, again
}

// holds reports whether an earlier limiter has taken a claim with this key for the request.
func (r *Request) holds(l *Counter, key string) bool {
	return slices.ContainsFunc(r.held, func(h holding) bool {
		return h.limiter.Store == l.Store &&
			slices.ContainsFunc(h.claims, func(c budget.Claim) bool { return c.Key == key })
	})
}

// inOrder returns the verdicts on claims, up to the first that rejects: those of the store on fresh claims,
// and what Peek found for claims that were taken before (again).
func inOrder(
	claims, fresh []budget.Claim, verdicts []budget.Verdict, again []budget.Claim, found []budget.Verdict,
) (all []budget.Verdict) {
	for _, c := range claims {
		is := func(other budget.Claim) bool { return other.Key == c.Key }
		if i := slices.IndexFunc(again, is); i >= 0 {
			all = append(all, budget.Verdict{Allowed: true, Used: found[i].Used})
		} else if i := slices.IndexFunc(fresh, is); i < len(verdicts) {
			all = append(all, verdicts[i])
			if !verdicts[i].Allowed {
				break
			}
		}
	}
	return all
}

// retake decides a claim that an earlier limiter has taken already, on the same scope with a higher limit:
// for the store that is a repeat, which it admits. The slot goes back first, so that, of many requests at
// once, the rejected ones make room for the others. A claim without a slot in a log is rejected while it is
// over the limit.
func (l *Counter) retake(
	ctx context.Context, id string, claim budget.Claim, v budget.Verdict,
) (budget.Verdict, error) {
	claims := []budget.Claim{claim}
	if claim.Form() != budget.Log {
		if claim.Form() == budget.Sum && claim.Cost == 0 {
			return v, nil // the budget is overdrawn, but this request takes nothing
		}
		found, err := l.Store.Peek(ctx, claims)
		if err != nil {
			return budget.Verdict{}, err
		}
		return budget.Verdict{Used: v.Used, RetryAfter: max(time.Millisecond, found[0].RetryAfter)}, nil
	}
	if err := l.Store.Finish(ctx, budget.Admission{ID: id, Claims: claims}, nil); err != nil {
		return budget.Verdict{}, err
	}
	verdicts, _, err := l.Direct.Admit(ctx, id, claims)
	if err != nil {
		return budget.Verdict{}, err
	}
	return verdicts[0], nil
}

// newID is uuid.NewString without its allocation for the random bytes.
func newID() string {
	var id uuid.UUID
	_, _ = rand.Read(id[:])                         // never fails
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80 // version 4, variant of RFC 9562
	return id.String()
}
