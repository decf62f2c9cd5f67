// Package plan works out, before any request comes, what the requests of a tier must meet: which keys with
// which budgets, in which calls.
package plan

import (
	"slices"

	"github.com/gin-tiers/ratelimit/ginlimit/headers"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
	"github.com/gin-tiers/ratelimit/tiers"
)

// Plan is all that one tier's requests must meet, worked out at start: the steps in the order of decision,
// each one script call. It is empty if everything is unlimited.
type Plan []Step

// Step is what one call decides, shortest window first.
type Step struct {
	Upstream bool // a provider's caps
	Claims   []Claim

	head string // the part of its keys before the owner
}

// Claim is a claim without its owner.
type Claim struct {
	budget.Budget
	Scope string

	owner string // as in keys; "" is the user
	tail  string // the part of its key after the owner
	told  headers.Budget
}

func newClaim(owner string, names budget.Names, b budget.Budget) Claim {
	unit := headers.Requests
	if b.Unit != budget.Requests {
		unit = headers.Unit(b.Unit.String())
	}
	told := headers.Budget{
		Name: b.Dimension.String(), Scope: names.Scope, Unit: unit, Window: b.Window,
		Limit: b.Limit, Reset: b.Window, Asked: true,
	}
	return Claim{Budget: b, Scope: names.Scope, owner: owner, tail: names.Tail(b.Dimension), told: told}
}

// Told is a verdict on the claim in the form for responses.
func (c *Claim) Told(v budget.Verdict) headers.Budget {
	b := c.told
	b.Remaining = v.Remaining(b.Limit)
	if !v.Allowed {
		b.Reset = max(0, v.RetryAfter)
	}
	return b
}

// Of appends the step's claims for a user, as in keys, to an empty slice. Their keys share one allocation.
func (s *Step) Of(user string, costs *Costs, claims []budget.Claim) []budget.Claim {
	var room [192]byte // enough for most, without an allocation
	joined := room[:0]
	for i := range s.Claims {
		c := &s.Claims[i]
		joined = append(joined, s.head...)
		joined = append(joined, c.ownerOr(user)...)
		joined = append(joined, c.tail...)
	}
	claims, rest := slices.Grow(claims, len(s.Claims)), string(joined)
	for i := range s.Claims {
		c := &s.Claims[i]
		n := len(s.head) + len(c.ownerOr(user)) + len(c.tail)
		claims = append(claims, budget.Claim{Key: rest[:n], Budget: c.Budget, Cost: costs.Of(c.Unit)})
		rest = rest[n:]
	}
	return claims
}

// ownerOr is the owner of the claim, as in keys.
func (c *Claim) ownerOr(user string) string {
	if c.owner != "" {
		return c.owner
	}
	return user
}

// Costs are what a request takes.
type Costs struct {
	Tokens int
	Spend  tiers.Money
	Weight int // of requests
}

// Of is what the request takes from a budget of that unit.
func (c *Costs) Of(u budget.Unit) int {
	switch u {
	case budget.Tokens:
		return max(1, c.Tokens)
	case budget.Spend:
		return int(c.Spend)
	}
	return c.Weight
}

// Weightless returns the plan without budgets of requests.
func (p Plan) Weightless() (without Plan) {
	for _, s := range p {
		s.Claims = slices.DeleteFunc(slices.Clone(s.Claims), func(c Claim) bool {
			return c.Unit == budget.Requests
		})
		if len(s.Claims) > 0 {
			without = append(without, s)
		}
	}
	return without
}

// With adds another subject's plan; owner is that subject's part of the keys. If together, it joins the same
// decision; otherwise it is decided after that.
func (p Plan) With(other Plan, owner string, together bool) Plan {
	all := slices.Clone(p)
	for _, s := range other {
		s.Claims = slices.Clone(s.Claims)
		for i := range s.Claims {
			s.Claims[i].owner = owner
		}
		if at := slices.IndexFunc(all, func(s Step) bool { return !s.Upstream }); together && at >= 0 {
			all[at].Claims = slices.Concat(all[at].Claims, s.Claims)
			continue
		}
		at := len(all)
		if at > 0 && all[at-1].Upstream { // the provider's caps are decided last
			at--
		}
		all = slices.Insert(all, at, s)
	}
	return all
}

// Estimated returns whether the plan has a budget whose cost is estimated, and three quarters of the smallest
// such budget of each unit. That is more than half, so two estimates at that bound are never admitted
// together; it is less than all, so small requests still fit.
func (p Plan) Estimated() (most Costs, ok bool) {
	if tokens, limited := p.smallest(budget.Tokens); limited {
		ok, most.Tokens = true, max(1, tokens-tokens/4)
	}
	if spend, limited := p.smallest(budget.Spend); limited {
		ok, most.Spend = true, tiers.Money(max(1, spend-spend/4))
	}
	return most, ok
}

// smallest returns the smallest limit on a unit, if there is one.
func (p Plan) smallest(u budget.Unit) (limit int, limited bool) {
	for _, s := range p {
		for _, c := range s.Claims {
			if c.Unit == u && (!limited || c.Limit < limit) {
				limit, limited = c.Limit, true
			}
		}
	}
	return limit, limited
}

// Clamp returns what a request takes of smaller, whose limits are a part of p's, as those of one replica are.
// A request that fits p takes at most the smallest limit of smaller, so it is not rejected as too large.
func (p Plan) Clamp(costs Costs, smaller Plan) Costs {
	fit := func(cost int, u budget.Unit) int {
		whole, _ := p.smallest(u)
		if part, limited := smaller.smallest(u); limited && cost <= whole {
			return min(cost, part)
		}
		return cost
	}
	return Costs{
		Tokens: fit(costs.Tokens, budget.Tokens), Spend: tiers.Money(fit(int(costs.Spend), budget.Spend)),
		Weight: fit(costs.Weight, budget.Requests),
	}
}

// UpstreamStep is the decision on a provider's caps.
func UpstreamStep(provider string, names budget.Names, caps []budget.Budget) Step {
	names.Scope = ""
	s := Step{Upstream: true, head: names.Head()}
	for _, b := range caps {
		s.Claims = append(s.Claims, newClaim(names.Upstream(provider), names, b))
	}
	return s
}

// LaterLease is the key of a further lease of a user's request.
func (s *Step) LaterLease(user string, number int) string {
	return budget.LaterLease(s.head, user, number)
}
