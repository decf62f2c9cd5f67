package ginlimit

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gin-tiers/ratelimit/ginlimit/headers"
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
	head     string // of its keys: what stands before their owner
	later    string // of the key of a further lease: what stands between the user and its number
	upstream bool   // a provider's caps
	claims   []plannedClaim
}

// plannedClaim is a claim without its owner.
type plannedClaim struct {
	owner  string // encoded; "" is the user
	scope  string
	tail   string // of its key: what stands after the owner
	budget budget.Budget
	told   headers.Budget // as responses tell of it, when nothing is taken
}

func newClaim(owner, scope, tail string, b budget.Budget) plannedClaim {
	return plannedClaim{owner, scope, tail, b, told(decision(scope, b, budget.Verdict{Allowed: true}))}
}

func (c *plannedClaim) decision(v budget.Verdict) Decision { return decision(c.scope, c.budget, v) }

// of appends the step's claims for a user, who is encoded already, to an empty slice. Their keys share one
// allocation. What costs nothing in requests is not asked for.
func (s *step) of(user string, costs *costs, claims []budget.Claim) []budget.Claim {
	size := 0
	for i := range s.claims {
		c := &s.claims[i]
		size += len(s.head) + len(c.owner) + len(user) + len(c.tail)
	}
	var joined strings.Builder
	joined.Grow(size)
	for i := range s.claims {
		c := &s.claims[i]
		joined.WriteString(s.head)
		joined.WriteString(c.ownerOr(user))
		joined.WriteString(c.tail)
	}
	claims, rest := slices.Grow(claims, len(s.claims)), joined.String()
	for i := range s.claims {
		c := &s.claims[i]
		n := len(s.head) + len(c.ownerOr(user)) + len(c.tail)
		claims = append(claims, budget.Claim{Key: rest[:n], Budget: c.budget, Cost: costs.of(c.budget.Unit)})
		rest = rest[n:]
	}
	return claims
}

// ownerOr is the owner of the claim, encoded.
func (c *plannedClaim) ownerOr(user string) string {
	if c.owner != "" {
		return c.owner
	}
	return user
}

// costs are what a request takes.
type costs struct {
	Usage
	weight int // of requests
}

// of is what the request takes of a budget of that unit.
func (c *costs) of(u budget.Unit) int {
	switch u {
	case budget.Tokens:
		return max(1, c.Tokens)
	case budget.Spend:
		return int(c.Spend)
	}
	return c.weight
}

// weightless is a plan without budgets of requests.
func (p plan) weightless() (without plan) {
	for _, s := range p {
		s.claims = slices.DeleteFunc(slices.Clone(s.claims), func(c plannedClaim) bool {
			return c.budget.Unit == budget.Requests
		})
		if len(s.claims) > 0 {
			without = append(without, s)
		}
	}
	return without
}

// with adds the plan of another subject, encoded: to the same decision where all keys are on one server, and
// behind it otherwise.
func (p plan) with(other plan, owner string, together bool) plan {
	all := slices.Clone(p)
	for _, s := range other {
		s.claims = slices.Clone(s.claims)
		for i := range s.claims {
			s.claims[i].owner = owner
		}
		if at := slices.IndexFunc(all, func(s step) bool { return !s.upstream }); together && at >= 0 {
			all[at].claims = slices.Concat(all[at].claims, s.claims)
			continue
		}
		at := len(all)
		if at > 0 && all[at-1].upstream { // the provider is asked last
			at--
		}
		all = slices.Insert(all, at, s)
	}
	return all
}

// plans are the plans of all tiers.
type plans struct {
	byTier  map[tiers.Tier]plan // of every tier that a table names
	unknown plan                // of every other one
}

// planning is how a mount wants its plans.
type planning struct {
	budget.Dimensions
	atomic   bool
	refunds  bool      // by WithRefundOn
	upstream *Upstream // of WithUpstream, or nil
}

// newPlans works out the plans for a limiter, which may be one of several replicas.
func newPlans(l *Limiter, layers []layer, how planning) plans {
	of := func(t, known tiers.Tier) plan {
		limits := func(s *tiers.Store) tiers.Limits { return s.Lookup(t) }
		return newPlan(limits, known, l, layers, how)
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
// shortest window first, outer layer first among equals: in one step if atomic, otherwise each in its own. A provider's caps for the
// known tier stand behind them: whom the provider refuses has taken nothing.
func newPlan(
	limits func(*tiers.Store) tiers.Limits, known tiers.Tier, l *Limiter, layers []layer, how planning,
) plan {
	var claims []plannedClaim
	for _, layer := range layers {
		for _, b := range budget.Of(limits(layer.tiers), how.Dimensions) {
			b.Limit = l.share(b.Limit)
			claims = append(claims, newClaim("", layer.names.Scope, layer.names.Tail(b.Dimension), b))
		}
	}
	if needsLease(claims, how.refunds) {
		remembers := budget.Budget{Dimension: budget.Dimension{Unit: budget.Concurrent}, Limit: budget.NoLimit}
		first := layers[0].names
		claims = append(claims, newClaim("", first.Scope, first.Tail(remembers.Dimension), remembers))
	}
	slices.SortStableFunc(claims, func(a, b plannedClaim) int {
		return cmp.Or(cmp.Compare(a.budget.Unit, b.budget.Unit), cmp.Compare(a.budget.Window, b.budget.Window))
	})

	var p plan
	for i, c := range claims {
		if i == 0 || !how.atomic {
			p = append(p, step{head: layers[0].names.Head(), later: layers[0].names.Later()})
		}
		last := &p[len(p)-1]
		last.claims = append(last.claims, c)
	}
	if how.upstream != nil {
		p = append(p, how.upstream.step(l, known))
	}
	return p
}

// needsLease tells whether something is settled when the request ends, and nothing remembers the request for
// so long. A bounded window may have to be refunded when the shortest has forgotten the request.
func needsLease(claims []plannedClaim, refunds bool) bool {
	settled := false
	for _, c := range claims {
		if c.budget.Unit == budget.Concurrent {
			return false
		}
		settled = settled || c.budget.Unit != budget.Requests || refunds && c.budget.Bounded
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
