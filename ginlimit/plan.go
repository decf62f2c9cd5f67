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
	head     string // of its keys: what stands before the user
	owner    string // in place of the user, encoded; "" is the user
	upstream bool   // a provider's caps
	claims   []plannedClaim
}

// plannedClaim is a claim without its user.
type plannedClaim struct {
	scope  string
	tail   string // of its key: what stands after the user
	budget budget.Budget
}

// of appends the step's claims for a user, who is encoded already, to an empty slice. Their keys share one
// allocation.
func (s step) of(user string, usage Usage, claims []budget.Claim) []budget.Claim {
	user = cmp.Or(s.owner, user)
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
		claims = append(claims, budget.Claim{Key: rest[:n], Budget: c.budget, Cost: cost(c.budget, usage)})
		rest = rest[n:]
	}
	return claims
}

// cost is what a request with this usage takes of a budget.
func cost(b budget.Budget, u Usage) int {
	switch b.Unit {
	case budget.Tokens:
		return max(1, u.Tokens)
	case budget.Spend:
		return int(u.Spend)
	}
	return 1
}

// plans are the plans of all tiers.
type plans struct {
	byTier  map[tiers.Tier]plan // of every tier that a table names
	unknown plan                // of every other one
}

// newPlans works out the plans for a limiter, which may be one of several replicas.
func newPlans(l *Limiter, layers []layer, atomic bool, on budget.Dimensions, upstream *Upstream) plans {
	of := func(t, known tiers.Tier) plan {
		p := newPlan(t, l, layers, atomic, on)
		if upstream != nil { // after the user: whom the provider refuses has taken nothing
			p = append(p, upstream.step(l, known))
		}
		return p
	}
	p := plans{
		byTier:  make(map[tiers.Tier]plan),
		unknown: of("", layers[0].tiers.Fallback()),
	}
	for _, layer := range layers {
		for _, t := range layer.tiers.Tiers() {
			p.byTier[t] = of(t, t)
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

// newPlan lays the budgets of all layers in order: requests, tokens, money, requests under way, of each the
// shortest window first, outer layer first among equals: in one step if atomic, otherwise each in its own.
func newPlan(t tiers.Tier, l *Limiter, layers []layer, atomic bool, on budget.Dimensions) plan {
	var claims []plannedClaim
	for _, layer := range layers {
		for _, b := range budget.Of(layer.tiers.Lookup(t), on) {
			b.Limit = l.share(b.Limit)
			claims = append(claims, plannedClaim{layer.names.Scope, layer.names.Tail(b.Dimension), b})
		}
	}
	if needsLease(claims) {
		remembers := budget.Budget{Dimension: budget.Dimension{Unit: budget.Concurrent}, Limit: budget.NoLimit}
		claims = append(claims, plannedClaim{l.names.Scope, l.names.Tail(remembers.Dimension), remembers})
	}
	slices.SortStableFunc(claims, func(a, b plannedClaim) int {
		order := []budget.Unit{budget.Requests, budget.Tokens, budget.Spend, budget.Concurrent}
		return cmp.Or(cmp.Compare(slices.Index(order, a.budget.Unit), slices.Index(order, b.budget.Unit)),
			cmp.Compare(a.budget.Window, b.budget.Window))
	})

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

// needsLease tells whether something is settled when the request ends, and nothing remembers the request.
func needsLease(claims []plannedClaim) bool {
	settled := false
	for _, c := range claims {
		if c.budget.Unit == budget.Concurrent {
			return false
		}
		settled = settled || c.budget.Unit != budget.Requests
	}
	return settled
}

// estimated tells whether the plan has a budget whose cost is estimated, and a quarter of the smallest such
// budgets.
func (p plan) estimated() (most Usage, ok bool) {
	for _, s := range p {
		for _, c := range s.claims {
			share := max(1, c.budget.Limit/4)
			switch c.budget.Unit {
			case budget.Tokens:
				if ok = true; most.Tokens == 0 || share < most.Tokens {
					most.Tokens = share
				}
			case budget.Spend:
				if ok = true; most.Spend == 0 || tiers.Money(share) < most.Spend {
					most.Spend = tiers.Money(share)
				}
			}
		}
	}
	return most, ok
}

// full is what a plan has of which nothing was taken.
func (p plan) full() (all left) {
	for _, s := range p {
		if s.upstream {
			continue
		}
		for _, c := range s.claims {
			all.add(decision(c.scope, c.budget, budget.Verdict{Allowed: true}))
		}
	}
	return all
}
