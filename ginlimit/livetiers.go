package ginlimit

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/plan"
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

// table is a tier table, and those of further scopes, with the plans that were worked out from them.
type table struct {
	tiers *tiers.Store
	own   *plan.Table
	local *plan.Table // of FailLocal's limiter, or nil
}

// newTable works out a table for the first of these layers. Local may be nil.
func newTable(s *tiers.Store, l, local *Limiter, layers []plan.Layer, how plan.Rules) (*table, error) {
	layers = slices.Clone(layers)
	layers[0].Tiers = s
	if err := canDecide(layers, how.Dimensions); err != nil {
		return nil, err
	}
	how.Share = l.share
	t := &table{tiers: s, own: plan.NewTable(layers, how)}
	if local != nil {
		how.Share = local.share
		t.local = plan.NewTable(layers, how)
	}
	return t, nil
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
