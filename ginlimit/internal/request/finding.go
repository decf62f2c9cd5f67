package request

import (
	"github.com/gin-tiers/ratelimit/ginlimit/headers"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/plan"
)

// Finding is what one limiter has decided on a request.
type Finding struct {
	Plan     plan.Plan
	Costs    plan.Costs       // of the request
	Verdicts []budget.Verdict // on the plan's claims, in their order; those after a rejection are missing
	Bypassed bool             // nothing was decided or taken: the kill switch was on

	GivenBack bool // what was taken has been given back
}

// add appends the verdicts of the plan's next step. The first step's are not copied.
func (f *Finding) add(verdicts []budget.Verdict) {
	if f.Verdicts == nil {
		f.Verdicts = verdicts
		return
	}
	f.Verdicts = append(f.Verdicts, verdicts...)
}

// each yields the plan's budgets that responses show, and what is left of each now. Budgets after a rejection
// were not decided (asked is false).
func (f *Finding) each(yield func(c *plan.Claim, v budget.Verdict, asked bool)) {
	decided := len(f.Verdicts)
	i := 0
	for s := range f.Plan {
		claims := f.Plan[s].Claims
		last := i + len(claims) - 1
		gone := f.GivenBack && last < decided && f.Verdicts[last].Allowed // a step takes all or nothing
		for j := range claims {
			c, v, asked := &claims[j], budget.Verdict{Allowed: true}, f.Bypassed
			if i < decided {
				v, asked = f.Verdicts[i], true
			}
			i++
			if c.Limit == budget.NoLimit || f.Plan[s].Upstream {
				continue
			}
			if gone && v.Allowed {
				v.Used -= f.Costs.Of(c.Unit)
			}
			yield(c, v, asked)
		}
	}
}

// Budgets are the budgets of each, in the form for responses.
func (f *Finding) Budgets() (all []headers.Budget) {
	f.each(func(c *plan.Claim, v budget.Verdict, asked bool) {
		b := c.Told(v)
		if b.Asked = asked; !asked {
			b.Remaining, b.Reset = 0, 0
		}
		all = append(all, b)
	})
	return all
}

// Tightest has the budget with the least remaining for each unit. On a tie the shorter window wins, then the
// one that was decided first. Requests in progress are left out, because their number changes at any time.
type Tightest [budget.Spend + 1]struct {
	claim   *plan.Claim // nil: there is none
	verdict budget.Verdict
}

// TightestOf returns the tightest of all budgets that were decided.
func TightestOf(found []Finding) (t Tightest) {
	for i := range found {
		found[i].each(func(c *plan.Claim, v budget.Verdict, asked bool) {
			if !asked || int(c.Unit) >= len(t) {
				return
			}
			least := &t[c.Unit]
			if least.claim != nil {
				before, now := least.verdict.Remaining(least.claim.Limit), v.Remaining(c.Limit)
				if now > before || now == before && c.Window >= least.claim.Window {
					return
				}
			}
			least.claim, least.verdict = c, v
		})
	}
	return t
}

// Tell writes the budgets into a response that has none yet.
func (t *Tightest) Tell(r *headers.Response) {
	told := func(u budget.Unit, b *headers.Budget) {
		if c := t[u].claim; c != nil {
			*b = c.Told(t[u].verdict)
		}
	}
	told(budget.Requests, &r.Requests)
	told(budget.Tokens, &r.Tokens)
	told(budget.Spend, &r.Spend)
}

// First is the tightest claim of the first unit that has one, requests first, or nil.
func (t *Tightest) First() (*plan.Claim, budget.Verdict) {
	for i := range t {
		if t[i].claim != nil {
			return t[i].claim, t[i].verdict
		}
	}
	return nil, budget.Verdict{}
}
