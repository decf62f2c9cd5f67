package headers

import (
	"net/http"
	"strconv"

	"github.com/gin-tiers/ratelimit/tiers"
)

// The headers of Default.
const (
	// Of the tightest window of requests, or of the window that rejected.
	Limit     = "X-RateLimit-Limit"     // units per window
	Remaining = "X-RateLimit-Remaining" // units left in it, never negative; 0 on a rejection
	Window    = "X-RateLimit-Window"    // its name

	// Of the tightest window of tokens and of money, if a tier has one. Money is in currency units.
	LimitTokens     = "X-RateLimit-Limit-Tokens"
	RemainingTokens = "X-RateLimit-Remaining-Tokens"
	LimitSpend      = "X-RateLimit-Limit-Spend"
	RemainingSpend  = "X-RateLimit-Remaining-Spend"
)

// Default is X-RateLimit-Limit, -Remaining and -Window (on a rejection of the budget that rejected), and
// -Limit-Tokens, -Remaining-Tokens, -Limit-Spend and -Remaining-Spend if a tier has such budgets.
var Default = &Dialect{names: canonical([]string{
	Limit, Remaining, Window, LimitTokens, RemainingTokens, LimitSpend, RemainingSpend,
})}

// The names in canonical form, as http.Header keeps them.
var (
	limitKey     = http.CanonicalHeaderKey(Limit)
	remainingKey = http.CanonicalHeaderKey(Remaining)
	windowKey    = http.CanonicalHeaderKey(Window)
)

func writeDefault(h http.Header, r *Response) {
	first, remaining := &r.Requests, r.Requests.Remaining
	if r.Rejected.Name != "" {
		first, remaining = &r.Rejected, 0
	}
	if first.Name != "" {
		// One backing array for three values of one element each.
		values := []string{amount(first, first.Limit), amount(first, remaining), first.Name}
		h[limitKey] = values[0:1:1]
		h[remainingKey] = values[1:2:2]
		h[windowKey] = values[2:3:3]
	}
	if r.Tokens.Name != "" {
		h.Set(LimitTokens, amount(&r.Tokens, r.Tokens.Limit))
		h.Set(RemainingTokens, amount(&r.Tokens, r.Tokens.Remaining))
	}
	if r.Spend.Name != "" {
		h.Set(LimitSpend, amount(&r.Spend, r.Spend.Limit))
		h.Set(RemainingSpend, amount(&r.Spend, r.Spend.Remaining))
	}
}

// amount writes a number of a budget: money in currency units.
func amount(b *Budget, n int) string {
	if b.Unit == Spend {
		return tiers.Money(n).String()
	}
	return strconv.Itoa(n)
}
