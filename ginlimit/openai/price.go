package openai

import (
	"fmt"
	"maps"
	"math"
	"math/bits"
	"strings"

	"github.com/gin-tiers/ratelimit/tiers"
)

// Price is what a million tokens of a model cost. Input that the provider had in its cache costs
// CachedInput; where that is zero it costs as any other Input. What Anthropic writes to its cache counts as
// Input.
type Price struct {
	Input, CachedInput, Output tiers.Money
}

// WithPrices makes Estimator and Meter fill in ginlimit.Usage.Spend. The table goes by the name of the
// model, and the longest prefix wins: an entry gpt-4o stands for gpt-4o-2024-08-06 too, unless there is one
// for gpt-4o-2024. A model that no entry stands for costs as the dearest entry. The model's name in the
// answer counts; where no entry stands for it, the one in the request does. A sum is rounded up to a whole
// millionth. Without prices, or with an empty table, nothing is spent. The table is copied. WithPrices
// panics on a negative price.
func WithPrices(prices map[string]Price) Option {
	for model, p := range prices {
		if p.Input < 0 || p.CachedInput < 0 || p.Output < 0 {
			panic(fmt.Sprintf("openai: WithPrices: a price of model %q is negative", model))
		}
	}
	table := priceTable(maps.Clone(prices))
	return func(o *options) { o.prices = table }
}

// priceTable is by prefix of the model's name.
type priceTable map[string]Price

// cost is what these tokens cost, of which cached are part of input. The first of the names that is known
// counts.
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

// cost needs 128 bits on the way. What does not fit into Money is the most that does.
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
