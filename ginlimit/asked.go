package ginlimit

import (
	"slices"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/plan"
	"github.com/gin-tiers/ratelimit/tiers"
)

// asked is a request as an engine is asked for it.
type asked struct {
	id       string // of the user, as tables list it
	user     string // the same, as in keys
	tier     tiers.Tier
	route    string
	estimate func(most Usage) (Usage, error) // of WithUsage, or nil; asked once, where a budget needs it
	weigh    func() (int, error)             // of WithWeight, or nil
	others   []other                         // of WithScopeFor
}

// other is another subject than the user, whose budgets the request must meet too.
type other struct {
	id    string // as its table lists it
	owner string // the same, as in keys
	tier  tiers.Tier
	table *table
}

// planOn is what the request must meet on a limiter, the user's plan and those of the other subjects, and
// whether a table names the user's tier.
func (a *asked) planOn(
	l *Limiter, t *table, plans func(*table) *plan.Table,
) (p plan.Plan, knownTier bool) {
	p, knownTier = plans(t).Of(a.id, a.tier, l.kill.now)
	for _, o := range a.others {
		theirs, _ := plans(o.table).Of(o.id, o.tier, l.kill.now)
		p = p.With(theirs, o.owner, l.names.OneSlot(a.user, o.owner))
	}
	return p, knownTier
}

func ownPlans(t *table) *plan.Table   { return t.own }
func localPlans(t *table) *plan.Table { return t.local }

// denied tells whether the user or another subject is refused.
func (a *asked) denied(t *table) bool {
	return t.own.Denies(a.id) ||
		slices.ContainsFunc(a.others, func(o other) bool { return o.table.own.Denies(o.id) })
}
