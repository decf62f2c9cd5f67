package ginlimit

import (
	"context"
	"slices"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/gin-tiers/ratelimit/luascripts"
)

// request is what the limiters on the way of one HTTP request know of each other.
type request struct {
	member   string // the request's id in every window
	taken    []slots
	tightest Decision // of all that admitted; zero where none has

	room [1]slots // for taken: most requests pass one limiter, in one call
}

// slots are the places that one call took in the windows of a limiter.
type slots struct {
	limiter *Limiter
	keys    []string
	budgets []luascripts.Budget
}

type requestKey struct{}

// requestOf returns the state of the HTTP request, which it makes for the first limiter.
func requestOf(c *gin.Context) *request {
	if v, ok := c.Get(requestKey{}); ok {
		return v.(*request)
	}
	r := newRequest()
	c.Set(requestKey{}, r)
	return r
}

func newRequest() *request {
	r := &request{member: uuid.NewString()}
	r.taken = r.room[:0]
	return r
}

// tighten reports whether d leaves less than what limiters before it left; it is then the one to
// tell. On a tie the shorter window counts, then the outer limiter.
func (r *request) tighten(d Decision) bool {
	if r.tightest.Allowed && !tighter(d, r.tightest) {
		return false
	}
	r.tightest = d
	return true
}

func tighter(a, b Decision) bool {
	if a.Remaining != b.Remaining {
		return a.Remaining < b.Remaining
	}
	return a.Window < b.Window
}

// decide takes the plan's steps in turn and stops at the first rejection or error. It returns the
// window that rejected, or the tightest of all. What was taken stays with the request, but after an
// error this limiter's share of it goes back: another one may decide now.
func (r *request) decide(ctx context.Context, l *Limiter, p plan, user string, deadline time.Time) (Decision, error) {
	before := len(r.taken)
	until := deadline
	if before > 0 || len(p) > 1 {
		until = deadline.Add(-l.reserve())
	}
	bounded, cancel := l.bounded(ctx, until)
	defer cancel()
	var tightest Decision
	for _, step := range p {
		keys := step.keys(user)
		replies, err := l.store.admit(bounded, r.member, keys, step.budgets)
		if err != nil {
			r.giveBack(ctx, before, deadline)
			return Decision{}, err
		}
		if replies[len(replies)-1].Allowed {
			r.take(slots{l, keys, step.budgets})
		}
		for i, reply := range replies {
			d := decision(step.budgets[i], reply)
			if reply.Allowed && reply.Count > d.Limit {
				d, err = l.askAnew(bounded, r.member, keys[i], step.budgets[i])
				if err != nil {
					r.giveBack(ctx, before, deadline)
					return Decision{}, err
				}
			}
			if !d.Allowed {
				return d, nil
			}
			if !tightest.Allowed || tighter(d, tightest) {
				tightest = d
			}
		}
	}
	return tightest, nil
}

// askAnew decides where a limiter before this one, on the same scope but with a higher limit, has
// taken the slot already: to the script that is a repeat, which it admits. The slot goes back first,
// so that of many requests at once those that are rejected make room for the others.
func (l *Limiter) askAnew(ctx context.Context, member, key string, b luascripts.Budget) (Decision, error) {
	keys, budgets := []string{key}, []luascripts.Budget{b}
	if err := l.store.giveBack(ctx, member, keys, budgets); err != nil {
		return Decision{}, err
	}
	replies, err := l.store.admit(ctx, member, keys, budgets)
	if err != nil {
		return Decision{}, err
	}
	return decision(b, replies[0]), nil
}

// take notes what a call took, less what a limiter before holds already.
func (r *request) take(s slots) {
	for _, before := range r.taken {
		for i := len(s.keys) - 1; i >= 0; i-- {
			if before.limiter.store == s.limiter.store && slices.Contains(before.keys, s.keys[i]) {
				s.keys = slices.Concat(s.keys[:i], s.keys[i+1:])
				s.budgets = slices.Concat(s.budgets[:i], s.budgets[i+1:])
			}
		}
	}
	if len(s.keys) > 0 {
		r.taken = append(r.taken, s)
	}
}

// giveBackAll returns all that the request took, in stacked limiters too: one that does not pass has
// cost nothing.
func (r *request) giveBackAll(ctx context.Context, deadline time.Time) { r.giveBack(ctx, 0, deadline) }

// giveBack returns what the request took from index first on, latest first. The client may have
// left by now; its slots go back all the same.
func (r *request) giveBack(ctx context.Context, first int, deadline time.Time) {
	ctx = context.WithoutCancel(ctx)
	for ; len(r.taken) > first; r.taken = r.taken[:len(r.taken)-1] {
		r.taken[len(r.taken)-1].giveBack(ctx, r.member, deadline)
	}
}

func (s slots) giveBack(ctx context.Context, member string, deadline time.Time) {
	ctx, cancel := s.limiter.bounded(ctx, deadline)
	defer cancel()
	if err := s.limiter.store.giveBack(ctx, member, s.keys, s.budgets); err != nil {
		s.limiter.logError(ctx, "ginlimit: the slots of a request that did not pass could not be given back", err)
	}
}
