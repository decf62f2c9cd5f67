package ginlimit

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
	"github.com/gin-tiers/ratelimit/tiers"
)

// layer is one table of budgets of the middleware: the limiter's own, or that of a WithScope.
type layer struct {
	names budget.Names
	tiers *tiers.Store
}

// plan is all that one tier's requests must meet, worked out at start: the steps in the order in
// which they are decided, each of them one script call. It is empty where everything is unlimited.
type plan []step

// step is what one call decides, shortest window first.
type step struct {
	head   string // of its keys: what stands before the user
	claims []plannedClaim
}

// plannedClaim is a claim without its user.
type plannedClaim struct {
	scope  string
	tail   string // of its key: what stands after the user
	budget budget.Budget
}

// of appends the step's claims for a user, who is encoded already, to an empty slice. Their keys share one
// allocation.
func (s step) of(user string, claims []budget.Claim) []budget.Claim {
	size := 0
	for _, c := range s.claims {
		size += len(s.head) + len(user) + len(c.tail)
	}
	var joined strings.Builder
	joined.Grow(size)
	for _, c := range s.claims {
		joined.WriteString(s.head)
		joined.WriteString(user)
		joined.WriteString(c.tail)
	}
	claims, rest := slices.Grow(claims, len(s.claims)), joined.String()
	for _, c := range s.claims {
		n := len(s.head) + len(user) + len(c.tail)
		claims = append(claims, budget.Claim{Key: rest[:n], Budget: c.budget})
		rest = rest[n:]
	}
	return claims
}

// plans are the plans of all tiers.
type plans struct {
	byTier  map[tiers.Tier]plan // of every tier that a table names
	unknown plan                // of every other one
}

// newPlans works out the plans for a limiter, which may be one of several replicas.
func newPlans(l *Limiter, layers []layer, atomic bool) plans {
	p := plans{
		byTier:  make(map[tiers.Tier]plan),
		unknown: newPlan("", l, layers, atomic),
	}
	for _, layer := range layers {
		for _, t := range layer.tiers.Tiers() {
			p.byTier[t] = newPlan(t, l, layers, atomic)
		}
	}
	return p
}

func (p plans) of(t tiers.Tier) plan {
	if plan, ok := p.byTier[t]; ok {
		return plan
	}
	return p.unknown
}

// newPlan lays the budgets of all layers in order, shortest window first, outer layer first among equals:
// in one step if atomic, otherwise each in its own.
func newPlan(t tiers.Tier, l *Limiter, layers []layer, atomic bool) plan {
	var claims []plannedClaim
	for _, layer := range layers {
		for _, b := range budget.Of(layer.tiers.Lookup(t)) {
			b.Limit = l.share(b.Limit)
			claims = append(claims, plannedClaim{layer.names.Scope, layer.names.Tail(b.Dimension), b})
		}
	}
	slices.SortStableFunc(claims, func(a, b plannedClaim) int { return cmp.Compare(a.budget.Window, b.budget.Window) })

	var p plan
	for i, c := range claims {
		if i == 0 || !atomic {
			p = append(p, step{head: layers[0].names.Head()})
		}
		last := &p[len(p)-1]
		last.claims = append(last.claims, c)
	}
	return p
}

// full is the tightest budget of a plan of which nothing was taken.
func (p plan) full() tightest {
	var t tightest
	for _, s := range p {
		for _, c := range s.claims {
			t.add(decision(c.scope, c.budget, budget.Verdict{Allowed: true}))
		}
	}
	return t
}
