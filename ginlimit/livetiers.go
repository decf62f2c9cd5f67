package ginlimit

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/gin-tiers/ratelimit/tiers"
)

// TierSource hands out the tier table of the moment, such as a *watch.File of tiers/watch. Store is called
// for each request, by many at once, and never returns nil. Another pointer means another table.
type TierSource interface{ Store() *tiers.Store }

// WithLiveTiers takes the tier table from src at each request, in place of WithTiers: a changed limit counts
// at the next decision. A table with a number that no option decides panics at start; later it is logged, and
// the table before it stays. It panics on nil.
func WithLiveTiers(src TierSource) Option {
	mustNotBeNil("WithLiveTiers: source", src)
	return func(o *options) { o.live = src }
}

// table is a tier table, and those of further scopes, with all that was worked out from them.
type table struct {
	tiers  *tiers.Store
	layers []layer
	how    planning
	own    plans
	local  plans // of FailLocal's limiter
}

// newTable works out a table for the first of these layers. Local may be nil.
func newTable(s *tiers.Store, l, local *Limiter, layers []layer, how planning) (*table, error) {
	layers = slices.Clone(layers)
	layers[0].tiers = s
	if err := canDecide(layers, how.Dimensions); err != nil {
		return nil, err
	}
	t := &table{tiers: s, layers: layers, how: how, own: newPlans(l, layers, how)}
	if local != nil {
		t.local = newPlans(local, layers, how)
	}
	return t, nil
}

// excepts tells whether a user has a plan of its own.
func (t *table) excepts(user string) bool {
	for i := range t.layers {
		if t.layers[i].tiers.Excepts(user) {
			return true
		}
	}
	return false
}

// denies tells whether a user is refused.
func (t *table) denies(user string) bool {
	for i := range t.layers {
		if t.layers[i].tiers.Denies(user) {
			return true
		}
	}
	return false
}

// planOf is what a user of a tier must meet on a limiter, of which the plans of all tiers are there.
func (t *table) planOf(l *Limiter, all plans, user string, tier tiers.Tier) plan {
	if t.excepts(user) {
		return t.userPlan(l, user, tier)
	}
	return all.of(tier)
}

// userPlan is what one user must meet that the table names. It is made anew for each request, which takes some
// microseconds.
func (t *table) userPlan(l *Limiter, user string, tier tiers.Tier) plan {
	known, now := tier, l.kill.now()
	if _, ok := t.own.byTier[tier]; !ok {
		known = t.tiers.Fallback()
	}
	limits := func(s *tiers.Store) tiers.Limits { return s.LookupUser(user, tier, now) }
	return newPlan(limits, known, l, t.layers, t.how)
}

// tables is the table of a mount.
type tables struct {
	source  TierSource // nil: the table stays
	work    func(*tiers.Store) (*table, error)
	current atomic.Pointer[table]
	refused atomic.Pointer[tiers.Store] // the latest that is of no use
}

// now is the table for this request.
func (t *tables) now(ctx context.Context) *table {
	current := t.current.Load()
	if t.source == nil {
		return current
	}
	store := t.source.Store()
	if store == current.tiers || store == t.refused.Load() {
		return current
	}
	worked, err := t.work(store)
	if err != nil {
		if t.refused.Swap(store) != store {
			slog.ErrorContext(ctx, "ginlimit: a tier table is of no use, and the one before it stays", "error", err)
		}
		return current
	}
	t.current.Store(worked)
	return worked
}
