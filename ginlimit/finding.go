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

// budgets are all budgets of the plan, as a response tells of them.
func (f finding) budgets() []headers.Budget {
	var all []headers.Budget
	decided := len(f.verdicts)
	taken := decided > 0 && (len(f.plan) > 1 || f.verdicts[decided-1].Allowed)
	i := 0
	for _, s := range f.plan {
		for _, c := range s.claims {
			v, asked := budget.Verdict{Allowed: true}, f.bypassed
			if i < decided {
				v, asked = f.verdicts[i], true
			}
			i++
			if c.budget.Limit == budget.NoLimit || s.upstream {
				continue
			}
			if taken && f.givenBack && v.Allowed {
				v.Used -= f.costs.of(c.budget)
			}
			b := told(decision(c.scope, c.budget, v))
			if b.Asked = asked; !asked {
				b.Remaining, b.Reset = 0, 0
			}
			all = append(all, b)
		}
	}
	return all
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

// toldTightest is a tightest decision as responses tell of it; the zero Budget where there is none.
func toldTightest(t tightest) headers.Budget {
	if !t.known {
		return headers.Budget{}
	}
	return told(t.Decision)
}

// tightestOf is the tightest of the budgets of a unit that were asked, in the order of left.
func tightestOf(budgets []headers.Budget, unit headers.Unit) (found headers.Budget) {
	for _, b := range budgets {
		if b.Unit != unit || !b.Asked {
			continue
		}
		if found.Name == "" || b.Remaining < found.Remaining ||
			b.Remaining == found.Remaining && b.Window < found.Window {
			found = b
		}
	}
	return found
}
