package request

import (
	"context"
	"slices"
	"time"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/plan"
)

// holding is what one call took for the request.
type holding struct {
	limiter *Counter
	at      int64 // by the store's clock
	claims  []budget.Claim
}

func (r *Request) admissionOf(h holding) budget.Admission {
	return budget.Admission{ID: r.id, At: h.at, Claims: h.claims}
}

// hold records what a call took, without what an earlier limiter holds already.
func (r *Request) hold(h holding) {
	if len(r.held) > 0 {
		h.claims = slices.DeleteFunc(slices.Clone(h.claims), func(c budget.Claim) bool {
			return r.holds(h.limiter, c.Key)
		})
	}
	if len(h.claims) > 0 {
		r.held = append(r.held, h)
		if holdsLease(h.claims) {
			h.limiter.Leases.hold(leasesOf(r.admissionOf(h)))
		}
	}
}

// GiveBackAll gives back all that the request took, even in other limiters: a request that does not pass
// costs nothing.
func (r *Request) GiveBackAll(ctx context.Context, deadline time.Time) { r.GiveBack(ctx, 0, deadline) }

// Leave gives back all that the request took or may have taken, when nobody waits for its answer any more.
func (r *Request) Leave(ctx context.Context, l *Counter) {
	ctx = context.WithoutCancel(ctx)
	deadline := l.Deadline(ctx, Whole)
	for _, h := range r.doubtful {
		_ = r.end(ctx, h, nil, deadline) // the failure of the earlier call has been reported already
	}
	r.doubtful = nil
	r.GiveBackAll(ctx, deadline)
}

// GiveBack gives back what the request took from index first on, latest first, even if the client has left.
func (r *Request) GiveBack(ctx context.Context, first int, deadline time.Time) {
	ctx = context.WithoutCancel(ctx)
	for ; len(r.held) > first; r.held = r.held[:len(r.held)-1] {
		h := r.held[len(r.held)-1]
		if err := r.end(ctx, h, nil, deadline); err != nil {
			h.limiter.LogError(ctx, "ginlimit: what a request took that did not pass could not be given back", err)
		}
	}
}

// Held is the number of calls from which the request holds something.
func (r *Request) Held() int { return len(r.held) }

// Finish ends the request after its handler has returned. It settles the reservation by what was used, leaves
// it taken if settled is nil, or gives back all. The client may have left by now.
func (r *Request) Finish(ctx context.Context, settled *plan.Costs, refunded bool) {
	for _, h := range r.held {
		if !refunded && !holdsLease(h.claims) {
			continue // windows of requests alone: nothing is settled
		}
		var used []int
		if !refunded {
			used = h.used(settled)
		}
		ctx := context.WithoutCancel(ctx)
		if err := r.end(ctx, h, used, h.limiter.Deadline(ctx, Whole)); err != nil {
			h.limiter.LogError(ctx,
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
func (h holding) used(settled *plan.Costs) []int {
	used := make([]int, len(h.claims))
	for i, c := range h.claims {
		used[i] = c.Entries()
		if c.Form() == budget.Sum {
			used[i] = c.Cost
		}
		if settled != nil && c.Unit == budget.Tokens {
			used[i] = settled.Tokens
		}
		if settled != nil && c.Unit == budget.Spend {
			used[i] = int(settled.Spend)
		}
	}
	return used
}

func (r *Request) end(ctx context.Context, h holding, used []int, deadline time.Time) error {
	if holdsLease(h.claims) {
		h.limiter.Leases.release(leasesOf(r.admissionOf(h)))
	}
	ctx, cancel := Bounded(ctx, deadline)
	defer cancel()
	return h.limiter.Store.Finish(ctx, r.admissionOf(h), used)
}
