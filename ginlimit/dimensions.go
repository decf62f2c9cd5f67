package ginlimit

import (
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/plan"
	"github.com/gin-tiers/ratelimit/tiers"
)

// mustDecide panics if canDecide fails.
func mustDecide(layers []plan.Layer, on budget.Dimensions) {
	if err := canDecide(layers, on); err != nil {
		panic("ginlimit: New: " + err.Error())
	}
}

// canDecide returns an error if a table has a number whose option is missing. The tier would have no limit
// there, and nobody would notice.
func canDecide(layers []plan.Layer, on budget.Dimensions) error {
	for _, layer := range layers {
		for _, t := range layer.Tiers.Tiers() {
			if err := canDecideOf(layer, "tier "+shown(t), layer.Tiers.Lookup(t), on); err != nil {
				return err
			}
		}
		overrides := layer.Tiers.Users().Overrides
		for _, user := range slices.Sorted(maps.Keys(overrides)) {
			what := "the override of " + shown(tiers.Tier(user))
			if err := canDecideOf(layer, what, overrides[user].Limits, on); err != nil {
				return err
			}
		}
	}
	return nil
}

func canDecideOf(l plan.Layer, what string, limits tiers.Limits, on budget.Dimensions) error {
	field, option := undecided(on, limits)
	if field == "" {
		return nil
	}
	in := ""
	if l.Names.Scope != "" {
		in = " in scope " + strconv.Quote(l.Names.Scope)
	}
	return errors.New(what + in + " has " + field + ", which nothing decides; add " + option)
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
