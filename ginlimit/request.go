package ginlimit

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
)

// request is one HTTP request on its way through one limiter or several: what it asks, holds and gives
// back. It knows nothing of Gin.
type request struct {
	id       string // in every window
	held     []holding
	doubtful []holding   // of calls that failed, and may have been counted all the same
	tightest tightest    // of all that admitted
	over     atomic.Bool // its handlers have returned

	// Most requests pass one limiter, in one call on two windows: room for that, in the same allocation.
	heldByOne   [1]holding
	firstClaims [2]budget.Claim
}

// holding is what one call took for the request.
type holding struct {
	limiter *Limiter
	claims  []budget.Claim
}

// init gives a zero request its id.
func (r *request) init() {
	r.id = uuid.NewString()
	r.held = r.heldByOne[:0]
}

// decide takes the plan's steps in turn and stops at the first rejection or error. It returns the
// decision that rejected, or the tightest of all. What was taken stays with the request, but after an
// error this limiter's share of it goes back: another one may decide now.
func (r *request) decide(ctx context.Context, l *Limiter, p plan, user string, deadline time.Time) (tightest, error) {
	before := len(r.held)
	until := deadline
	if before > 0 || len(p) > 1 {
		until = lessReserve(deadline)
	}
	waiting, cancel := bounded(ctx, until)
	defer cancel()
	var all tightest
	for _, step := range p {
		rejected, err := r.take(waiting, l, step, user, &all)
		if err != nil {
			r.giveBack(ctx, before, deadline)
			return tightest{}, err
		}
		if rejected.known {
			return rejected, nil
		}
	}
	return all, nil
}

// take decides one step. It returns the decision that rejected, if one did, and adds the others to all.
func (r *request) take(ctx context.Context, l *Limiter, s step, user string, all *tightest) (rejected tightest, err error) {
	var claims []budget.Claim
	if r.firstClaims[0].Key == "" { // nobody has taken that room
		claims = r.firstClaims[:0]
	}
	claims = s.of(user, claims)
	verdicts, err := l.store.Admit(ctx, r.id, claims)
	if err != nil {
		r.doubtful = append(r.doubtful, holding{l, claims})
		return tightest{}, err
	}
	if verdicts[len(verdicts)-1].Allowed {
		r.hold(holding{l, claims})
	}
	for i, v := range verdicts {
		if v.Allowed && v.Used > claims[i].Limit {
			if v, err = l.retake(ctx, r.id, claims[i]); err != nil {
				return tightest{}, err
			}
		}
		d := decision(s.claims[i].scope, claims[i].Budget, v)
		if !d.Allowed {
			return tightest{d, true}, nil
		}
		all.add(d)
	}
	return tightest{}, nil
}

// retake decides a claim that a limiter before this one has taken already, on the same scope with a higher
// limit: to the store that is a repeat, which it admits. The slot goes back first, so that of many requests
// at once those that are rejected make room for the others.
func (l *Limiter) retake(ctx context.Context, id string, claim budget.Claim) (budget.Verdict, error) {
	claims := []budget.Claim{claim}
	if err := l.store.GiveBack(ctx, id, claims); err != nil {
		return budget.Verdict{}, err
	}
	verdicts, err := l.store.Admit(ctx, id, claims)
	if err != nil {
		return budget.Verdict{}, err
	}
	return verdicts[0], nil
}

// hold notes what a call took, less what a limiter before holds already.
func (r *request) hold(h holding) {
	for _, before := range r.held {
		for i := len(h.claims) - 1; i >= 0; i-- {
			same := func(c budget.Claim) bool { return c.Key == h.claims[i].Key }
			if before.limiter.store == h.limiter.store && slices.ContainsFunc(before.claims, same) {
				h.claims = slices.Concat(h.claims[:i], h.claims[i+1:])
			}
		}
	}
	if len(h.claims) > 0 {
		r.held = append(r.held, h)
	}
}

// giveBackAll returns all that the request took, in stacked limiters too: one that does not pass has
// cost nothing.
func (r *request) giveBackAll(ctx context.Context, deadline time.Time) { r.giveBack(ctx, 0, deadline) }

// leave returns all that the request took or may have taken, when nobody waits for its answer any more.
func (r *request) leave(ctx context.Context, l *Limiter) {
	ctx = context.WithoutCancel(ctx)
	deadline := l.deadline(ctx, whole)
	for _, h := range r.doubtful {
		_ = h.giveBack(ctx, r.id, deadline) // its failure is that of the call before, which is told
	}
	r.doubtful = nil
	r.giveBackAll(ctx, deadline)
}

// giveBack returns what the request took from index first on, latest first. The client may have
// left by now; its slots go back all the same.
func (r *request) giveBack(ctx context.Context, first int, deadline time.Time) {
	ctx = context.WithoutCancel(ctx)
	for ; len(r.held) > first; r.held = r.held[:len(r.held)-1] {
		h := r.held[len(r.held)-1]
		if err := h.giveBack(ctx, r.id, deadline); err != nil {
			h.limiter.logError(ctx, "ginlimit: the slots of a request that did not pass could not be given back", err)
		}
	}
}

func (h holding) giveBack(ctx context.Context, id string, deadline time.Time) error {
	ctx, cancel := bounded(ctx, deadline)
	defer cancel()
	return h.limiter.store.GiveBack(ctx, id, h.claims)
}
