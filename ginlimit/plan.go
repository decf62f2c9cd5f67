package ginlimit

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gin-tiers/ratelimit/luascripts"
	"github.com/gin-tiers/ratelimit/tiers"
)

// plan is all that one tier's requests must meet, worked out at start: the steps in the order in
// which they are decided, each of them one script call.
type plan []step

// step is what one call decides, shortest window first.
type step struct {
	head    string   // of its keys: what stands before the user
	tails   []string // of its keys: what stands after
	budgets []luascripts.Budget
}

// keys returns the step's keys for a user, who is encoded already. They share one allocation.
func (s step) keys(user string) []string {
	size := 0
	for _, tail := range s.tails {
		size += len(s.head) + len(user) + len(tail)
	}
	var joined strings.Builder
	joined.Grow(size)
	for _, tail := range s.tails {
		joined.WriteString(s.head)
		joined.WriteString(user)
		joined.WriteString(tail)
	}
	keys, rest := make([]string, len(s.tails)), joined.String()
	for i, tail := range s.tails {
		n := len(s.head) + len(user) + len(tail)
		keys[i], rest = rest[:n], rest[n:]
	}
	return keys
}

// layer is one budget of the middleware: the limiter's own, or that of a WithScope.
type layer struct {
	names namespace
	tiers *tiers.Store
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

// newPlan lays the windows of all layers in order, shortest first, outer layer first among equals:
// in one step if atomic, otherwise each in its own.
func newPlan(t tiers.Tier, l *Limiter, layers []layer, atomic bool) plan {
	type window struct {
		tail   string
		budget luascripts.Budget
	}
	var windows []window
	for _, layer := range layers {
		limits := layer.tiers.Lookup(t)
		windows = append(windows,
			window{layer.names.tail(minute), luascripts.NewBudget(l.share(limits.PerMinute), minute)},
			window{layer.names.tail(day), luascripts.NewBudget(l.share(limits.PerDay), day)})
	}
	slices.SortStableFunc(windows, func(a, b window) int { return cmp.Compare(a.budget.Window(), b.budget.Window()) })

	var p plan
	for i, w := range windows {
		if i == 0 || !atomic {
			p = append(p, step{head: layers[0].names.head()})
		}
		last := &p[len(p)-1]
		last.tails = append(last.tails, w.tail)
		last.budgets = append(last.budgets, w.budget)
	}
	return p
}

// untouched is the tightest window of a plan of which nothing was taken.
func (p plan) untouched() Decision {
	var tightest Decision
	for _, s := range p {
		for _, b := range s.budgets {
			if d := passed(b); !tightest.Allowed || tighter(d, tightest) {
				tightest = d
			}
		}
	}
	return tightest
}
