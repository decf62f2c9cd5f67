package ginlimit

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/plan"
	"github.com/gin-tiers/ratelimit/tiers"
)

// TierSource returns the current tier table, for example a *watch.File of tiers/watch. Store is called for
// each request, from many goroutines at once, and never returns nil. A new pointer means a new table.
type TierSource interface{ Store() *tiers.Store }

// WithLiveTiers takes the tier table from src at each request, instead of WithTiers: a changed limit takes
// effect at the next decision. If a table has a number whose option is missing, New panics at start; later
// this is logged, and the previous table stays. WithLiveTiers panics on nil.
func WithLiveTiers(src TierSource) Option {
	mustNotBeNil("WithLiveTiers: source", src)
	return func(o *options) { o.live = src }
}

// table is a tier table, and the tables of further scopes, with the plans worked out from them.
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
	refused atomic.Pointer[tiers.Store] // the latest unusable one
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
			slog.ErrorContext(ctx, "ginlimit: the new tier table cannot be used; the previous one stays", "error", err)
		}
		return current
	}
	t.current.Store(worked)
	return worked
}
