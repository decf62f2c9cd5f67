package ginlimit

import (
	"context"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
)

// request is one HTTP request on its way through one limiter or several: what it asks, holds and gives
// back. It knows nothing of Gin.
type request struct {
	id        string // in every window
	held      []holding
	doubtful  []holding // of calls that failed, and may have been counted all the same
	found     []finding // by all that decided
	admission Admission
	over      atomic.Bool // its handlers have returned

	// Most requests pass one limiter, in one call on two windows: room for that, in the same allocation.
	heldByOne   [1]holding
	foundByOne  [1]finding
	firstClaims [2]budget.Claim
}

// holding is what one call took for the request.
type holding struct {
	limiter *Limiter
	at      int64 // by the store's clock
	claims  []budget.Claim
}

func (r *request) admissionOf(h holding) budget.Admission {
	return budget.Admission{ID: r.id, At: h.at, Claims: h.claims}
}

// init gives a zero request its id.
func (r *request) init() {
	r.id = uuid.NewString()
	r.held = r.heldByOne[:0]
	r.found = r.foundByOne[:0]
}

// decide takes the plan's steps in turn and stops at the first rejection or error. It returns the
// decision that rejected, if one did, and adds what it found. What was taken stays with the request,
// but after an error this limiter's share of it goes back: another one may decide now.
func (r *request) decide(
	ctx context.Context, l *Limiter, p plan, user string, costs costs, deadline time.Time,
) (rejected rejection, err error) {
	before := len(r.held)
	r.found = append(r.found, finding{plan: p, costs: costs})
	found := &r.found[len(r.found)-1]
	until := deadline
	if before > 0 || len(p) > 1 {
		until = lessReserve(deadline)
	}
	waiting, cancel := bounded(ctx, until)
	defer cancel()
	store := l.store
	if before > 0 {
		store = l.direct // it may be a repeat on a scope of a limiter before, which a full window admits
	}
	for i := range p {
		rejected, err = r.take(waiting, l, store, &p[i], user, found)
		if err != nil {
			r.giveBack(ctx, before, deadline)
			r.found = r.found[:len(r.found)-1]
			return rejection{}, err
		}
		if rejected.claim != nil {
			break
		}
	}
	return rejected, nil
}

// rejection is the decision that rejected, if one did.
type rejection struct {
	claim    *plannedClaim // nil: there was none
	verdict  budget.Verdict
	upstream bool // it was the provider's cap
}

func (r rejection) decision() Decision { return r.claim.decision(r.verdict) }

// take decides one step. It returns the decision that rejected, if one did, and adds all verdicts to found.
func (r *request) take(
	ctx context.Context, l *Limiter, store budget.Store, s *step, user string, found *finding,
) (rejected rejection, err error) {
	var claims []budget.Claim
	if r.firstClaims[0].Key == "" { // nobody has taken that room
		claims = r.firstClaims[:0]
	}
	claims = s.of(user, &found.costs, claims)
	fresh, again := r.divide(l, s, user, claims)
	var peeked []budget.Verdict // of again
	if len(again) > 0 {
		if peeked, err = l.direct.Peek(ctx, again); err != nil {
			return rejection{}, err
		}
	}
	verdicts, at, err := store.Admit(ctx, r.id, fresh)
	taken := holding{l, at, fresh}
	if err != nil {
		taken.at = 0
		r.doubtful = append(r.doubtful, taken)
		return rejection{}, err
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
				return rejection{}, err
			}
			found.verdicts[len(found.verdicts)-len(verdicts)+i] = v
		}
		if !v.Allowed {
			return rejection{&s.claims[i], v, s.upstream}, nil
		}
	}
	return rejection{}, nil
}

// divide returns of a step's claims those to be admitted, and those that a limiter before has taken. A store
// knows a repeat by a lease: what shares its lease with that limiter, and is not a repeat of the whole, gets
// one of its own. Logs know repeats by themselves.
func (r *request) divide(
	l *Limiter,
	s *step,
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
		key := s.head + user + s.later + strconv.Itoa(len(r.held)+1) + ":leases"
		fresh = append(fresh, budget.Claim{Key: key, Budget: remembers})
	}
	return fresh, again
}

// holds tells whether a limiter before has taken a claim of a key for the request.
func (r *request) holds(l *Limiter, key string) bool {
	return slices.ContainsFunc(r.held, func(h holding) bool {
		return h.limiter.store == l.store &&
			slices.ContainsFunc(h.claims, func(c budget.Claim) bool { return c.Key == key })
	})
}

// inOrder returns the verdicts on claims, to the first that rejects: those of a store on fresh, and what was
// found of again, which is taken.
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

// retake decides a claim that a limiter before this one has taken already, on the same scope with a higher
// limit: to the store that is a repeat, which it admits. The slot goes back first, so that of many requests
// at once those that are rejected make room for the others. What has no slot of its own is rejected for as
// long as it is over the limit.
func (l *Limiter) retake(
	ctx context.Context, id string, claim budget.Claim, v budget.Verdict,
) (budget.Verdict, error) {
	claims := []budget.Claim{claim}
	if claim.Form() != budget.Log {
		if claim.Form() == budget.Sum && claim.Cost == 0 {
			return v, nil // in debt, of which this request takes nothing
		}
		found, err := l.store.Peek(ctx, claims)
		if err != nil {
			return budget.Verdict{}, err
		}
		return budget.Verdict{Used: v.Used, RetryAfter: max(time.Millisecond, found[0].RetryAfter)}, nil
	}
	if err := l.store.Finish(ctx, budget.Admission{ID: id, Claims: claims}, nil); err != nil {
		return budget.Verdict{}, err
	}
	verdicts, _, err := l.direct.Admit(ctx, id, claims)
	if err != nil {
		return budget.Verdict{}, err
	}
	return verdicts[0], nil
}

// hold notes what a call took, less what a limiter before holds already.
func (r *request) hold(h holding) {
	if len(r.held) > 0 {
		h.claims = slices.DeleteFunc(slices.Clone(h.claims), func(c budget.Claim) bool {
			return r.holds(h.limiter, c.Key)
		})
	}
	if len(h.claims) > 0 {
		r.held = append(r.held, h)
		if holdsLease(h.claims) {
			h.limiter.leases.hold(leasesOf(r.admissionOf(h)))
		}
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
		_ = r.end(ctx, h, nil, deadline) // its failure is that of the call before, which is told
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
		if err := r.end(ctx, h, nil, deadline); err != nil {
			h.limiter.logError(ctx, "ginlimit: what a request took that did not pass could not be given back", err)
		}
	}
}

// finish does what the handler has recorded, when it has returned. The client may have left by now.
func (r *request) finish(ctx context.Context) {
	word, usage := r.admission.end()
	for _, h := range r.held {
		if word != saidRefund && !holdsLease(h.claims) {
			continue // windows of requests alone: nothing is settled
		}
		var used []int
		if word != saidRefund {
			used = h.used(word, usage)
		}
		ctx := context.WithoutCancel(ctx)
		if err := r.end(ctx, h, used, h.limiter.deadline(ctx, whole)); err != nil {
			h.limiter.logError(ctx,
				"ginlimit: what a request used could not be settled; what was reserved stays taken", err)
		}
	}
	r.held = nil
}

func holdsLease(claims []budget.Claim) bool {
	for i := range claims {
		if claims[i].Form() == budget.Lease {
			return true
		}
	}
	return false
}

// used is what stays taken of each claim.
func (h holding) used(w word, u Usage) []int {
	used := make([]int, len(h.claims))
	for i, c := range h.claims {
		used[i] = c.Entries()
		if c.Form() == budget.Sum {
			used[i] = c.Cost
		}
		if w == saidUsage && c.Unit == budget.Tokens {
			used[i] = u.Tokens
		}
		if w == saidUsage && c.Unit == budget.Spend {
			used[i] = int(u.Spend)
		}
	}
	return used
}

func (r *request) end(ctx context.Context, h holding, used []int, deadline time.Time) error {
	if holdsLease(h.claims) {
		h.limiter.leases.release(leasesOf(r.admissionOf(h)))
	}
	ctx, cancel := bounded(ctx, deadline)
	defer cancel()
	return h.limiter.store.Finish(ctx, r.admissionOf(h), used)
}
