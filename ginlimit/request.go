package ginlimit

import (
	"context"
	"log/slog"
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
}

// slots are the places that one call took in the windows of a store.
type slots struct {
	store   store
	keys    []string
	budgets []luascripts.Budget
}

type requestKey struct{}

// requestOf returns the state of the HTTP request, which it makes for the first limiter.
func requestOf(c *gin.Context) *request {
	if v, ok := c.Get(requestKey{}); ok {
		return v.(*request)
	}
	r := &request{member: uuid.NewString()}
	c.Set(requestKey{}, r)
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
// error this store's share of it goes back: another one may decide now.
func (r *request) decide(ctx context.Context, s store, p plan, prefix string) (Decision, error) {
	before := len(r.taken)
	var tightest Decision
	for _, step := range p {
		keys := step.keys(prefix)
		replies, err := s.admit(ctx, r.member, keys, step.budgets)
		if err != nil {
			r.giveBack(ctx, before)
			return Decision{}, err
		}
		for i, reply := range replies {
			d := decision(step.budgets[i], reply)
			if !d.Allowed {
				return d, nil
			}
			if !tightest.Allowed || tighter(d, tightest) {
				tightest = d
			}
		}
		r.taken = append(r.taken, slots{s, keys, step.budgets})
	}
	return tightest, nil
}

// giveBackAll returns all that the request took, in stacked limiters too: a request that is refused
// has cost nothing.
func (r *request) giveBackAll(ctx context.Context) { r.giveBack(ctx, 0) }

// giveBack returns what the request took from index first on, latest first.
func (r *request) giveBack(ctx context.Context, first int) {
	for ; len(r.taken) > first; r.taken = r.taken[:len(r.taken)-1] {
		r.taken[len(r.taken)-1].giveBack(ctx, r.member)
	}
}

// giveBackTimeout bounds the giving back.
const giveBackTimeout = time.Second

func (s slots) giveBack(ctx context.Context, member string) {
	// The client may have left by now; its slots go back all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout)
	defer cancel()
	if err := s.store.giveBack(ctx, member, s.keys, s.budgets); err != nil {
		slog.ErrorContext(ctx, "ginlimit: the slots of a refused request could not be given back", "error", err)
	}
}
