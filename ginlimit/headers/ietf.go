package headers

import (
	"net/http"
	"net/url"

	"github.com/dunglas/httpsfv"
)

// The headers of IETF.
const (
	RateLimitPolicy = "RateLimit-Policy"
	RateLimit       = "RateLimit"
)

// IETF is draft-ietf-httpapi-ratelimit-headers-10, in structured fields (RFC 9651):
//
//	RateLimit-Policy: "minute";q=5;w=60, "day";q=100;w=86400
//	RateLimit: "minute";r=4;t=60, "day";r=99;t=86400
//
// RateLimit-Policy lists all budgets of the caller's tier; RateLimit lists those on which this request was
// decided. A scope's budget is called "images:minute", with the scope query-escaped. The quota unit qu is
// "tokens", "spend" (in millionths) or "concurrent-requests"; it is missing for requests. Structured fields
// have at most fifteen digits; a larger number is written as the largest one.
var IETF = New(writeIETF, RateLimitPolicy, RateLimit)

// maxInteger is the largest integer of structured fields (RFC 9651, section 3.3.1).
const maxInteger = 999_999_999_999_999

func writeIETF(h http.Header, r Response) {
	var policies, limits httpsfv.List
	for _, b := range r.Budgets {
		policy := httpsfv.NewItem(PolicyName(b))
		policy.Params.Add("q", integer(b.Limit))
		switch b.Unit {
		case Tokens, Spend:
			policy.Params.Add("qu", string(b.Unit))
		case Concurrent:
			policy.Params.Add("qu", "concurrent-requests")
		}
		if b.Window > 0 {
			policy.Params.Add("w", seconds(b.Window))
		}
		policies = append(policies, policy)
		if !b.Asked {
			continue
		}
		limit := httpsfv.NewItem(PolicyName(b))
		limit.Params.Add("r", integer(b.Remaining))
		if b.Reset > 0 {
			limit.Params.Add("t", seconds(b.Reset))
		}
		limits = append(limits, limit)
	}
	setList(h, RateLimitPolicy, policies)
	setList(h, RateLimit, limits)
}

// PolicyName is the unique name of a budget in a response: "minute", or with a scope "images:minute". The
// scope is query-escaped.
func PolicyName(b Budget) string {
	if b.Scope == "" {
		return b.Name
	}
	return url.QueryEscape(b.Scope) + ":" + b.Name
}

func integer(n int) int64 { return min(max(0, int64(n)), maxInteger) }

// setList sets a field, or removes it if its list is empty (RFC 9651, section 3.1).
func setList(h http.Header, name string, list httpsfv.List) {
	if len(list) == 0 {
		h.Del(name)
		return
	}
	value, err := httpsfv.Marshal(list)
	if err != nil { // a caller of the dialect named a window in characters that no string may have
		h.Del(name)
		return
	}
	h.Set(name, value)
}
