package ginlimit

import (
	"github.com/gin-tiers/ratelimit/ginlimit/headers"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
)

// finding is what one limiter has decided on a request.
type finding struct {
	plan     plan
	costs    costs            // that were asked for
	verdicts []budget.Verdict // on the plan's claims, in their order; those behind a rejection are missing
	bypassed bool             // nothing was asked and nothing taken: the kill switch was on

	givenBack bool // what was taken has gone back
}

// add appends the verdicts of the plan's next step. The first step's are not copied.
func (f *finding) add(verdicts []budget.Verdict) {
	if f.verdicts == nil {
		f.verdicts = verdicts
		return
	}
	f.verdicts = append(f.verdicts, verdicts...)
}

// each yields the plan's budgets that clients are told of, and what is left of each now. Those behind a
// rejection were not asked.
func (f *finding) each(yield func(c *plannedClaim, v budget.Verdict, asked bool)) {
	decided := len(f.verdicts)
	gone := f.givenBack && decided > 0 && (len(f.plan) > 1 || f.verdicts[decided-1].Allowed)
	i := 0
	for s := range f.plan {
		claims := f.plan[s].claims
		for j := range claims {
			c, v, asked := &claims[j], budget.Verdict{Allowed: true}, f.bypassed
			if i < decided {
				v, asked = f.verdicts[i], true
			}
			i++
			if c.budget.Limit == budget.NoLimit || f.plan[s].upstream {
				continue
			}
			if gone && v.Allowed {
				v.Used -= f.costs.of(c.budget.Unit)
			}
			yield(c, v, asked)
		}
	}
}

// budgets are the budgets of each, as a response tells of them.
func (f *finding) budgets() (all []headers.Budget) {
	f.each(func(c *plannedClaim, v budget.Verdict, asked bool) {
		b := c.toldOf(v)
		if b.Asked = asked; !asked {
			b.Remaining, b.Reset = 0, 0
		}
		all = append(all, b)
	})
	return all
}

// tightest is of each unit the budget with the least remaining. On a tie the shorter window counts, then the
// one that was asked first. Requests under way are left out, since their number changes at any moment.
type tightest [budget.Spend + 1]struct {
	claim   *plannedClaim // nil: there is none
	verdict budget.Verdict
}

// tightestOf looks at all budgets that were asked.
func tightestOf(found []finding) (t tightest) {
	for i := range found {
		found[i].each(func(c *plannedClaim, v budget.Verdict, asked bool) {
			if !asked || int(c.budget.Unit) >= len(t) {
				return
			}
			least := &t[c.budget.Unit]
			if least.claim != nil {
				before, now := least.verdict.Remaining(least.claim.budget.Limit), v.Remaining(c.budget.Limit)
				if now > before || now == before && c.budget.Window >= least.claim.budget.Window {
					return
				}
			}
			least.claim, least.verdict = c, v
		})
	}
	return t
}

// told is the budget of a unit as responses tell of it; the zero Budget where there is none.
func (t *tightest) told(u budget.Unit) headers.Budget {
	if c := t[u].claim; c != nil {
		return c.toldOf(t[u].verdict)
	}
	return headers.Budget{}
}

// first is the decision that stands for all: on requests, if there is one.
func (t tightest) first() Decision {
	for _, least := range t {
		if c := least.claim; c != nil {
			return c.decision(least.verdict)
		}
	}
	return Decision{}
}

// toldOf is a verdict on the claim as responses tell of it.
func (c *plannedClaim) toldOf(v budget.Verdict) headers.Budget {
	b := c.told
	b.Remaining = v.Remaining(b.Limit)
	if !v.Allowed {
		b.Reset = v.RetryAfter
	}
	return b
}

// told is a decision as responses tell of it.
func told(d Decision) headers.Budget {
	unit, reset := headers.Requests, d.Window
	if d.Budget != "" {
		unit = headers.Unit(d.Budget)
	}
	if !d.Allowed {
		reset = d.RetryAfter
	}
	return headers.Budget{
		Name: d.Name(), Scope: d.Scope, Unit: unit, Window: d.Window,
		Limit: d.Limit, Remaining: d.Remaining, Reset: max(0, reset), Asked: true,
	}
}
