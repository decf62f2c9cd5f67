package ginlimit

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit/headers"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/request"
	"github.com/gin-tiers/ratelimit/tiers"
)

// Response headers, as headers.Default sets them. HeaderLimit, HeaderRemaining and HeaderWindow are on
// admitted requests and on 429s. They describe the tightest window; on a 429, the window that rejected. They
// are missing if nothing was decided, as with FailOpen, or nothing is limited.
const (
	HeaderLimit      = headers.Limit     // units per window
	HeaderRemaining  = headers.Remaining // units left in it, never negative
	HeaderWindow     = headers.Window    // "minute", "day", …; on a 429 "tokens-minute", "concurrent", … too
	HeaderRetryAfter = "Retry-After"     // whole seconds, on 429 and 503 (RFC 9110, section 10.2.3)

	// The tightest window of tokens and of money, if a tier has one. Money is in currency units.
	HeaderLimitTokens     = headers.LimitTokens
	HeaderRemainingTokens = headers.RemainingTokens
	HeaderLimitSpend      = headers.LimitSpend
	HeaderRemainingSpend  = headers.RemainingSpend

	// HeaderShouldRetry, "false", tells OpenAI-style and Anthropic-style SDKs not to retry. It is set if a
	// window of requests longer than an hour rejected, and on any answer whose Retry-After is above an hour:
	// some SDKs would retry in seconds, others sleep for hours.
	HeaderShouldRetry = "X-Should-Retry"

	// HeaderShadow is set if a limiter WithShadow would have rejected the request: the name of the window, of a
	// provider's cap "upstream-minute" for example, or "denied".
	HeaderShadow = "X-RateLimit-Shadow"
)

// statusClientClosedRequest is nginx's status for a client that left before its answer.
const statusClientClosedRequest = 499

// amount writes a number of a decision: money in currency units.
func amount(d Decision, n int) string {
	if budget.UnitOf(d.Budget) == budget.Spend {
		return tiers.Money(n).String()
	}
	return strconv.Itoa(n)
}

// allowance says what a decision's budget allows: "5 requests per minute".
func allowance(d Decision) string {
	noun, per := "requests", " per "+budget.Dimension{Window: d.Window}.String()
	switch budget.UnitOf(d.Budget) {
	case budget.Tokens:
		noun = "tokens"
	case budget.Spend:
		return "a spend of " + amount(d, d.Limit) + per
	case budget.Concurrent:
		per = " at once"
	}
	if d.Limit == 1 {
		noun = noun[:len(noun)-1]
	}
	return amount(d, d.Limit) + " " + noun + per
}

// reject answers 429 and ends the chain.
func (m *middleware) reject(c *gin.Context, r *requestOn, rejected request.Rejection) (next bool) {
	d := decisionOf(rejected.Claim, rejected.Verdict)
	code := "rate_limit_exceeded"
	switch budget.UnitOf(d.Budget) {
	case budget.Requests:
		if d.Window == budget.Day {
			code = "daily_limit_exceeded"
		}
		if d.Window == budget.Month {
			code = "monthly_limit_exceeded"
		}
	case budget.Tokens:
		code = "tokens_exceeded"
	case budget.Spend:
		code = "spend_exceeded"
	case budget.Concurrent:
		code = "too_many_concurrent_requests"
	}
	if m.dialects.silent() {
		r.hush(c.Writer.Header())
	} else {
		r.tell(c.Writer.Header(), &rejected, m.limiter.kill.now)
	}
	retryAfter := d.RetryAfterSeconds()
	m.abort(c, Refusal{
		Status: http.StatusTooManyRequests, Type: "rate_limit_error", Code: code,
		Message:    fmt.Sprintf("Rate limit exceeded: %s. Retry in %d s.", allowance(d), retryAfter),
		RetryAfter: retryAfter, Decision: d,
	})
	return false
}

// upstreamFull is the answer at a provider's cap.
func upstreamFull(d Decision) Refusal {
	retryAfter := d.RetryAfterSeconds()
	return Refusal{
		Status: http.StatusServiceUnavailable, Type: "api_error", Code: "upstream_capacity",
		Message:    fmt.Sprintf("The provider is at its capacity. Retry in %d s.", retryAfter),
		RetryAfter: retryAfter,
	}
}

// exceedsBudget is the answer if a request is larger than a whole budget.
func exceedsBudget(d Decision) Refusal {
	return Refusal{
		Status: http.StatusBadRequest, Type: "invalid_request_error", Code: "request_exceeds_budget",
		Message: "The request needs more than its whole budget: " + allowance(d) + ".", Decision: d,
	}
}

// The refusals without a decision. Their texts are fixed: inner errors go to the log only.
var (
	unauthenticated = Refusal{
		Status: http.StatusUnauthorized, Type: "authentication_error", Code: "unauthenticated",
		Message: "Nobody is signed in.",
	}
	userDenied = Refusal{
		Status: http.StatusForbidden, Type: "permission_error", Code: "user_denied",
		Message: "This caller is not served.",
	}
	tierLookupFailed = Refusal{
		Status: http.StatusServiceUnavailable, Type: "api_error", Code: "tier_lookup_failed",
		Message: "The caller's tier could not be looked up. Try again shortly.",
	}
	limiterUnavailable = Refusal{
		Status: http.StatusServiceUnavailable, Type: "api_error", Code: "rate_limiter_unavailable",
		Message: "The rate limiter is unavailable. Try again shortly.", RetryAfter: 1,
	}
	invalidRequest = Refusal{
		Status: http.StatusBadRequest, Type: "invalid_request_error", Code: "invalid_request",
		Message: "The request cannot be read.",
	}
)

// abandon ends the chain of a request that nobody waits for.
func (r *requestOn) abandon() (next bool) {
	r.hush(r.c.Writer.Header())
	r.c.AbortWithStatus(statusClientClosedRequest)
	return false
}

// refuse answers without limit headers, even those of limiters before, and ends the chain.
func (m *middleware) refuse(c *gin.Context, r *requestOn, refusal Refusal) (next bool) {
	r.hush(c.Writer.Header())
	m.abort(c, refusal)
	return false
}
