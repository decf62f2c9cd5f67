package ginlimit

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
	"github.com/gin-tiers/ratelimit/tiers"
)

// Response headers. The X-RateLimit-… three are on what passes a limited route and on its 429, and describe
// its tightest window; on a rejection, the window that rejected. They are missing where nothing was decided,
// as with FailOpen, or nothing is limited.
const (
	HeaderLimit      = "X-RateLimit-Limit"     // requests per window
	HeaderRemaining  = "X-RateLimit-Remaining" // requests left in it, never negative
	HeaderWindow     = "X-RateLimit-Window"    // "minute", "hour", "day", "month"; on a 429 "concurrent", … too
	HeaderRetryAfter = "Retry-After"           // whole seconds, on 429 and 503 (RFC 9110, section 10.2.3)

	// The tightest window of tokens and of money, where a tier has one. Money is in currency units.
	HeaderLimitTokens     = "X-RateLimit-Limit-Tokens"
	HeaderRemainingTokens = "X-RateLimit-Remaining-Tokens"
	HeaderLimitSpend      = "X-RateLimit-Limit-Spend"
	HeaderRemainingSpend  = "X-RateLimit-Remaining-Spend"

	// HeaderShouldRetry, "false", tells OpenAI-style and Anthropic-style SDKs not to repeat a call
	// that the day or the month rejected: some would come back in seconds, others sleep for hours.
	HeaderShouldRetry = "X-Should-Retry"
)

// statusClientClosedRequest is nginx's status for a client that left before its answer.
const statusClientClosedRequest = 499

// The names in canonical form, as http.Header keeps them.
var (
	limitKey     = http.CanonicalHeaderKey(HeaderLimit)
	remainingKey = http.CanonicalHeaderKey(HeaderRemaining)
	windowKey    = http.CanonicalHeaderKey(HeaderWindow)
)

// setLimitHeaders sets the headers of what is known.
func setLimitHeaders(h http.Header, l left) {
	if l.requests.known {
		setWindowHeaders(h, l.requests.Decision, l.requests.Remaining)
	}
	if l.tokens.known {
		setAmountHeaders(h, HeaderLimitTokens, HeaderRemainingTokens, l.tokens.Decision)
	}
	if l.spend.known {
		setAmountHeaders(h, HeaderLimitSpend, HeaderRemainingSpend, l.spend.Decision)
	}
}

func setWindowHeaders(h http.Header, d Decision, remaining int) {
	// One backing array for three values of one element each.
	values := []string{amount(d, d.Limit), amount(d, remaining), windowName(d)}
	h[limitKey] = values[0:1:1]
	h[remainingKey] = values[1:2:2]
	h[windowKey] = values[2:3:3]
}

func setAmountHeaders(h http.Header, limit, remaining string, d Decision) {
	h.Set(limit, amount(d, d.Limit))
	h.Set(remaining, amount(d, d.Remaining))
}

func removeLimitHeaders(h http.Header) {
	for _, key := range []string{
		limitKey, remainingKey, windowKey,
		HeaderLimitTokens, HeaderRemainingTokens, HeaderLimitSpend, HeaderRemainingSpend,
	} {
		h.Del(key)
	}
}

// amount writes a number of what a decision is about: money in currency units.
func amount(d Decision, n int) string {
	if budget.Unit(d.Budget) == budget.Spend {
		return tiers.Money(n).String()
	}
	return strconv.Itoa(n)
}

// abortWithJSON ends the chain with a JSON body, whatever type a middleware before, such as one for
// streams, has announced.
func abortWithJSON(c *gin.Context, status int, body any) {
	c.Writer.Header().Del("Content-Type")
	c.AbortWithStatusJSON(status, body)
}

// windowName is what the headers and the body call the window of a decision.
func windowName(d Decision) string {
	return budget.Dimension{Window: d.Window, Unit: budget.Unit(d.Budget)}.String()
}

// allowance tells what a decision's budget allows: "5 requests per minute".
func allowance(d Decision) string {
	noun, per := "requests", " per "+budget.Dimension{Window: d.Window}.String()
	switch budget.Unit(d.Budget) {
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

// apiError is the error object that OpenAI-style and Anthropic-style SDKs decode.
type apiError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    string  `json:"code"`
}

type rejectionBody struct {
	Error      apiError    `json:"error"`
	Detail     string      `json:"detail"`
	Scope      string      `json:"scope,omitempty"`
	Window     string      `json:"window"`
	Limit      json.Number `json:"limit"`
	Remaining  int         `json:"remaining"`
	RetryAfter int         `json:"retry_after"`
}

// reject answers 429 and ends the chain.
func reject(c *gin.Context, d Decision) {
	retryAfter, slow := d.RetryAfterSeconds(), d.RetryAfter > time.Hour
	code := "rate_limit_exceeded"
	switch budget.Unit(d.Budget) {
	case budget.Requests:
		slow = d.Window > budget.Hour
		if d.Window == budget.Day {
			code = "daily_limit_exceeded"
		}
		if d.Window == budget.Month {
			code = "monthly_limit_exceeded"
		}
	case budget.Tokens:
		code = "tokens_exceeded"
		setAmountHeaders(c.Writer.Header(), HeaderLimitTokens, HeaderRemainingTokens, d)
	case budget.Spend:
		code = "spend_exceeded"
		setAmountHeaders(c.Writer.Header(), HeaderLimitSpend, HeaderRemainingSpend, d)
	case budget.Concurrent:
		code = "too_many_concurrent_requests"
	}
	if slow {
		c.Header(HeaderShouldRetry, "false")
	}
	setWindowHeaders(c.Writer.Header(), d, 0)
	c.Header(HeaderRetryAfter, strconv.Itoa(retryAfter))
	c.Header("Cache-Control", "no-store") // RFC 6585, section 4
	abortWithJSON(c, http.StatusTooManyRequests, rejectionBody{
		Error: apiError{
			Message: fmt.Sprintf("Rate limit exceeded: %s. Retry in %d s.", allowance(d), retryAfter),
			Type:    "rate_limit_error",
			Code:    code,
		},
		Detail:     "Rate limit exceeded",
		Scope:      d.Scope,
		Window:     windowName(d),
		Limit:      json.Number(amount(d, d.Limit)),
		RetryAfter: retryAfter,
	})
}

// upstreamFull is the answer at a provider's cap.
func upstreamFull(d Decision) refusal {
	return refusal{http.StatusServiceUnavailable, strconv.Itoa(d.RetryAfterSeconds()), apiError{
		Message: "The provider is at its capacity. Try again shortly.",
		Type:    "api_error", Code: "upstream_capacity"}}
}

// exceedsBudget is the answer to a request that is larger than a whole budget.
func exceedsBudget(d Decision) refusal {
	return refusal{http.StatusBadRequest, "", apiError{
		Message: "The request needs more than its whole budget: " + allowance(d) + ".",
		Type:    "invalid_request_error", Code: "request_exceeds_budget"}}
}

// refusal is an answer to a request on which no decision was made.
type refusal struct {
	status     int
	retryAfter string
	err        apiError
}

// The refusals. Their texts are fixed: what failed inside is for the log.
var (
	unauthenticated = refusal{http.StatusUnauthorized, "", apiError{
		Message: "Nobody is signed in.", Type: "authentication_error", Code: "unauthenticated"}}
	tierLookupFailed = refusal{http.StatusServiceUnavailable, "", apiError{
		Message: "The caller's tier could not be looked up. Try again shortly.",
		Type:    "api_error", Code: "tier_lookup_failed"}}
	limiterUnavailable = refusal{http.StatusServiceUnavailable, "1", apiError{
		Message: "The rate limiter is unavailable. Try again shortly.",
		Type:    "api_error", Code: "rate_limiter_unavailable"}}
	invalidRequest = refusal{http.StatusBadRequest, "", apiError{
		Message: "The request cannot be read.", Type: "invalid_request_error", Code: "invalid_request"}}
)

// abandon ends the chain of a request that nobody waits for.
func abandon(c *gin.Context) {
	removeLimitHeaders(c.Writer.Header())
	c.AbortWithStatus(statusClientClosedRequest)
}

// refuse answers without limit headers, those of limiters before included, and ends the chain.
func refuse(c *gin.Context, r refusal) {
	removeLimitHeaders(c.Writer.Header())
	if r.retryAfter != "" {
		c.Header(HeaderRetryAfter, r.retryAfter)
	}
	c.Header("Cache-Control", "no-store")
	abortWithJSON(c, r.status, gin.H{"error": r.err})
}
