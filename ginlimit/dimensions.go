package ginlimit

import (
	"strconv"

	"github.com/gin-tiers/ratelimit/tiers"
)

// dimensions are the budgets beyond requests that options have switched on. The zero value has none.
type dimensions struct {
	usage       bool // tokens and spend
	concurrency bool
}

// mustDecide panics where a table has a number that nothing would decide: its tier would be unlimited
// there, unnoticed.
func (d dimensions) mustDecide(layers []layer) {
	for _, layer := range layers {
		for _, t := range layer.tiers.Tiers() {
			field, option := d.undecided(layer.tiers.Lookup(t))
			if field == "" {
				continue
			}
			in := ""
			if layer.names.Scope != "" {
				in = " in scope " + strconv.Quote(layer.names.Scope)
			}
			panic("ginlimit: New: tier " + shown(t) + in + " has " + field + ", which nothing decides; add " + option)
		}
	}
}

// undecided returns the first field, as a tier file spells it, that needs an option which is not there, and
// that option.
func (d dimensions) undecided(l tiers.Limits) (field, option string) {
	for _, n := range []struct {
		decided bool
		limit   int64
		field   string
		option  string
	}{
		{d.usage, int64(l.TokensPerMinute), "tokens_per_minute", "WithUsage"},
		{d.usage, int64(l.TokensPerDay), "tokens_per_day", "WithUsage"},
		{d.usage, int64(l.TokensPerMonth), "tokens_per_month", "WithUsage"},
		{d.usage, int64(l.SpendPerDay), "spend_per_day", "WithUsage"},
		{d.usage, int64(l.SpendPerMonth), "spend_per_month", "WithUsage"},
		{d.concurrency, int64(l.Concurrent), "concurrent", "WithConcurrency"},
	} {
		if !n.decided && n.limit != 0 && n.limit != tiers.Unlimited {
			return n.field, n.option
		}
	}
	return "", ""
}
