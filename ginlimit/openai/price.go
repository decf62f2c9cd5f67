package openai

import (
	"fmt"
	"maps"
	"math"
	"math/bits"
	"strings"

	"github.com/gin-tiers/ratelimit/tiers"
)

// Price is what a million tokens of a model cost. Input that the provider had in its cache costs CachedInput,
// or Input if that is zero. What Anthropic writes to its cache counts as Input.
type Price struct {
	Input, CachedInput, Output tiers.Money
}

// WithPrices makes Estimator and Meter set ginlimit.Usage.Spend. The keys of the table are prefixes of model
// names, and the longest prefix wins: gpt-4o also matches gpt-4o-2024-08-06, unless there is an entry
// gpt-4o-2024. A model without a match costs as much as the most expensive entry. Meter looks up the model's
// name in the answer first, then the name in the request. A sum is rounded up to a whole millionth. Without
// prices, or with an empty table, nothing is spent. The table is copied. WithPrices panics on a negative
// price.
func WithPrices(prices map[string]Price) Option {
	for model, p := range prices {
		if p.Input < 0 || p.CachedInput < 0 || p.Output < 0 {
			panic(fmt.Sprintf("openai: WithPrices: a price of model %q is negative", model))
		}
	}
	table := priceTable(maps.Clone(prices))
	return func(o *options) { o.prices = table }
}

// priceTable has prices by prefix of the model's name.
type priceTable map[string]Price

// cost is what these tokens cost; cached is a part of input. The first known name counts.
func (t priceTable) cost(input, cached, output int, models ...string) tiers.Money {
	for _, model := range models {
		if p, ok := t.of(model); ok {
			return p.cost(input, cached, output)
		}
	}
	var dearest tiers.Money
	for _, p := range t {
		dearest = max(dearest, p.cost(input, cached, output))
	}
	return dearest
}

// of returns the price of the longest prefix of model.
func (t priceTable) of(model string) (best Price, found bool) {
	if model == "" {
		return Price{}, false
	}
	longest := -1
	for prefix, p := range t {
		if len(prefix) > longest && strings.HasPrefix(model, prefix) {
			best, longest = p, len(prefix)
		}
	}
	return best, longest >= 0
}

// cost calculates with 128 bits. A result that is too large for Money becomes the largest Money.
func (p Price) cost(input, cached, output int) tiers.Money {
	if p.CachedInput == 0 {
		p.CachedInput = p.Input
	}
	const million = 1_000_000
	hi, lo := uint64(0), uint64(million-1) // rounds up
	add := func(tokens int, price tiers.Money) {
		h, l := bits.Mul64(uint64(max(tokens, 0)), uint64(price))
		var carry uint64
		lo, carry = bits.Add64(lo, l, 0)
		hi, _ = bits.Add64(hi, h, carry) // each product is below 2^126
	}
	add(input-cached, p.Input)
	add(cached, p.CachedInput)
	add(output, p.Output)
	if hi >= million {
		return math.MaxInt64
	}
	sum, _ := bits.Div64(hi, lo, million)
	return tiers.Money(min(sum, math.MaxInt64))
}
