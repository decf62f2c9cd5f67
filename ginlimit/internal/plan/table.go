package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
	"github.com/gin-tiers/ratelimit/tiers"
)

// Layer is one table of budgets of the middleware: the limiter's own, or that of a WithScope.
type Layer struct {
	Names budget.Names
	Tiers *tiers.Store
}

// Table holds the plans of all tiers on one limiter, and those of single users.
type Table struct {
	layers  []Layer
	how     Rules
	byTier  map[tiers.Tier]Plan // for every tier that a table names
	unknown Plan                // for every other tier
	lists   bool                // a layer names single users
}

// Rules are the settings of a mount for its plans.
type Rules struct {
	budget.Dimensions
	Atomic  bool // all in one call
	Refunds bool // a request may be refunded when its handler returns
	// Upstream are the caps of a provider for a tier, or nil.
	Upstream func(tiers.Tier) []budget.Budget
	Provider string              // the name of the provider
	Share    func(limit int) int // one replica's part of a limit
}

// NewTable works out the plans of all tiers that the layers name. There is at least one layer.
func NewTable(layers []Layer, how Rules) *Table {
	t := &Table{layers: layers, how: how, byTier: make(map[tiers.Tier]Plan)}
	t.unknown = t.lay("", func(s *tiers.Store) tiers.Limits { return s.Lookup("") })
	for _, layer := range layers {
		users := layer.Tiers.Users()
		t.lists = t.lists || len(users.Overrides)+len(users.Allow)+len(users.Deny) > 0
		for _, tier := range layer.Tiers.Tiers() {
			t.byTier[tier] = t.lay(tier, func(s *tiers.Store) tiers.Limits { return s.Lookup(tier) })
		}
	}
	return t
}

// Of returns what a user of a tier must meet now, and whether a table names the tier. If a table has an
// exception for the user, the plan is made anew each time, which takes some microseconds.
func (t *Table) Of(user string, tier tiers.Tier, now func() time.Time) (p Plan, known bool) {
	if p, known = t.byTier[tier]; !known {
		p = t.unknown
	}
	if t.lists && slices.ContainsFunc(t.layers, func(l Layer) bool { return l.Tiers.Excepts(user) }) {
		at := now()
		p = t.lay(tier, func(s *tiers.Store) tiers.Limits { return s.LookupUser(user, tier, at) })
	}
	return p, known
}

// Knows reports whether a layer names the tier.
func (t *Table) Knows(tier tiers.Tier) bool {
	_, known := t.byTier[tier]
	return known
}

// Denies reports whether a user is on a deny list.
func (t *Table) Denies(user string) bool {
	return t.lists && slices.ContainsFunc(t.layers, func(l Layer) bool { return l.Tiers.Denies(user) })
}

// lay puts the budgets of all layers in order: requests, tokens, money, requests in progress; for each the
// shortest window first, and for equal windows the outer layer first. They are one step if atomic, otherwise
// one step each. A provider's caps come last: what they reject has taken nothing.
func (t *Table) lay(tier tiers.Tier, limits func(*tiers.Store) tiers.Limits) (p Plan) {
	var claims []Claim
	for _, layer := range t.layers {
		for _, b := range budget.Of(limits(layer.Tiers), t.how.Dimensions) {
			b.Limit = t.how.Share(b.Limit)
			claims = append(claims, newClaim("", layer.Names, b))
		}
	}
	first := t.layers[0].Names
	if needsLease(claims, t.how.Refunds) {
		remembers := budget.Budget{Dimension: budget.Dimension{Unit: budget.Concurrent}, Limit: budget.NoLimit}
		claims = append(claims, newClaim("", first, remembers))
	}
	slices.SortStableFunc(claims, func(a, b Claim) int {
		return cmp.Or(cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Window, b.Window))
	})
	for i, c := range claims {
		if i == 0 || !t.how.Atomic {
			p = append(p, Step{head: first.Head()})
		}
		last := &p[len(p)-1]
		last.Claims = append(last.Claims, c)
	}
	if t.how.Upstream != nil {
		known := tier
		if !slices.ContainsFunc(t.layers, func(l Layer) bool { return slices.Contains(l.Tiers.Tiers(), tier) }) {
			known = t.layers[0].Tiers.Fallback()
		}
		caps := t.how.Upstream(known)
		for i := range caps {
			caps[i].Limit = t.how.Share(caps[i].Limit)
		}
		p = append(p, UpstreamStep(t.how.Provider, first, caps))
	}
	return p
}

// needsLease reports whether something is settled when the request ends, but nothing remembers the request
// until then. A bounded window may be refunded after the shortest window has forgotten the request.
func needsLease(claims []Claim, refunds bool) bool {
	settled := false
	for _, c := range claims {
		if c.Unit == budget.Concurrent {
			return false
		}
		settled = settled || c.Unit != budget.Requests || refunds && c.Bounded
	}
	return settled
}
