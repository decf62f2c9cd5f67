package ginlimit

import (
	"slices"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/plan"
	"github.com/gin-tiers/ratelimit/tiers"
)

// asked is what an engine has to decide.
type asked struct {
	id       string // of the user, as tables list it
	user     string // id, as in keys
	tier     tiers.Tier
	route    string
	estimate func(most Usage) (Usage, error) // of WithUsage, or nil; called once, if a budget needs it
	weigh    func() (int, error)             // of WithWeight, or nil
	others   []other                         // of WithScopeFor
}

// other is a further subject, beside the user, whose budgets the request must meet, too.
type other struct {
	id    string // as its table lists it
	owner string // id, as in keys
	tier  tiers.Tier
	scope string
	table *table
}

// planOn returns what the request must meet on a limiter: the plans of the user and of the other subjects. It
// also returns whether a table names the user's tier.
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

// denied reports whether the user or another subject is on a deny list.
func (a *asked) denied(t *table) bool {
	return t.own.Denies(a.id) ||
		slices.ContainsFunc(a.others, func(o other) bool { return o.table.own.Denies(o.id) })
}
