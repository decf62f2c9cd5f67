package ginlimit

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
)

// Response headers. The X-RateLimit-… three are on what passes a limited route and on its 429, and describe
// its tightest window; on a rejection, the window that rejected. They are missing where nothing was decided,
// as with FailOpen, or nothing is limited.
const (
	HeaderLimit      = "X-RateLimit-Limit"     // requests per window
	HeaderRemaining  = "X-RateLimit-Remaining" // requests left in it, never negative
	HeaderWindow     = "X-RateLimit-Window"    // "minute", "hour", "day" or "month"
	HeaderRetryAfter = "Retry-After"           // whole seconds, on 429 and 503 (RFC 9110, section 10.2.3)

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

func setLimitHeaders(h http.Header, d Decision) {
	// One backing array for three values of one element each.
	values := []string{strconv.Itoa(d.Limit), strconv.Itoa(d.Remaining), windowName(d)}
	h[limitKey] = values[0:1:1]
	h[remainingKey] = values[1:2:2]
	h[windowKey] = values[2:3:3]
}

func removeLimitHeaders(h http.Header) {
	for _, key := range []string{limitKey, remainingKey, windowKey} {
		delete(h, key)
	}
}

// abortWithJSON ends the chain with a JSON body, whatever type a middleware before, such as one for
// streams, has announced.
func abortWithJSON(c *gin.Context, status int, body any) {
	c.Writer.Header().Del("Content-Type")
	c.AbortWithStatusJSON(status, body)
}

// windowName is what the headers and the body call the window of a decision.
func windowName(d Decision) string { return budget.Dimension{Window: d.Window}.String() }

// apiError is the error object that OpenAI-style and Anthropic-style SDKs decode.
type apiError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    string  `json:"code"`
}

type rejection struct {
	Error      apiError `json:"error"`
	Detail     string   `json:"detail"`
	Scope      string   `json:"scope,omitempty"`
	Window     string   `json:"window"`
	Limit      int      `json:"limit"`
	Remaining  int      `json:"remaining"`
	RetryAfter int      `json:"retry_after"`
}

// reject answers 429 and ends the chain.
func reject(c *gin.Context, d Decision) {
	window, retryAfter := windowName(d), d.RetryAfterSeconds()
	code := "rate_limit_exceeded"
	switch d.Window {
	case budget.Day:
		code = "daily_limit_exceeded"
	case budget.Month:
		code = "monthly_limit_exceeded"
	}
	if d.Window > budget.Hour {
		c.Header(HeaderShouldRetry, "false")
	}
	noun := "requests"
	if d.Limit == 1 {
		noun = "request"
	}
	setLimitHeaders(c.Writer.Header(), d)
	c.Header(HeaderRetryAfter, strconv.Itoa(retryAfter))
	c.Header("Cache-Control", "no-store") // RFC 6585, section 4
	abortWithJSON(c, http.StatusTooManyRequests, rejection{
		Error: apiError{
			Message: fmt.Sprintf("Rate limit exceeded: %d %s per %s. Retry in %d s.", d.Limit, noun, window, retryAfter),
			Type:    "rate_limit_error",
			Code:    code,
		},
		Detail:     "Rate limit exceeded",
		Scope:      d.Scope,
		Window:     window,
		Limit:      d.Limit,
		Remaining:  d.Remaining,
		RetryAfter: retryAfter,
	})
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
		Message: "The caller's tier could not be looked up. Try again shortly.", Type: "api_error", Code: "tier_lookup_failed"}}
	limiterUnavailable = refusal{http.StatusServiceUnavailable, "1", apiError{
		Message: "The rate limiter is unavailable. Try again shortly.", Type: "api_error", Code: "rate_limiter_unavailable"}}
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
