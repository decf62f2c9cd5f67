package ginlimit

import (
	"errors"
	"strconv"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
	"github.com/gin-tiers/ratelimit/tiers"
)

// mustDecide panics where canDecide fails.
func mustDecide(layers []layer, on budget.Dimensions) {
	if err := canDecide(layers, on); err != nil {
		panic("ginlimit: New: " + err.Error())
	}
}

// canDecide returns an error if a table has a number that no option decides. The tier would have no limit
// there, and nobody would notice.
func canDecide(layers []layer, on budget.Dimensions) error {
	for _, layer := range layers {
		for _, t := range layer.tiers.Tiers() {
			field, option := undecided(on, layer.tiers.Lookup(t))
			if field == "" {
				continue
			}
			in := ""
			if layer.names.Scope != "" {
				in = " in scope " + strconv.Quote(layer.names.Scope)
			}
			return errors.New("tier " + shown(t) + in + " has " + field + ", which nothing decides; add " + option)
		}
	}
	return nil
}

// undecided returns the first field, as a tier file spells it, whose option is missing, and the option.
func undecided(on budget.Dimensions, l tiers.Limits) (field, option string) {
	for _, n := range []struct {
		decided bool
		limit   int64
		field   string
		option  string
	}{
		{on.Usage, int64(l.TokensPerMinute), "tokens_per_minute", "WithUsage"},
		{on.Usage, int64(l.TokensPerDay), "tokens_per_day", "WithUsage"},
		{on.Usage, int64(l.TokensPerMonth), "tokens_per_month", "WithUsage"},
		{on.Usage, int64(l.SpendPerDay), "spend_per_day", "WithUsage"},
		{on.Usage, int64(l.SpendPerMonth), "spend_per_month", "WithUsage"},
		{on.Concurrent, int64(l.Concurrent), "concurrent", "WithConcurrency"},
	} {
		if !n.decided && n.limit != 0 && n.limit != tiers.Unlimited {
			return n.field, n.option
		}
	}
	return "", ""
}
