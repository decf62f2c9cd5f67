package ginlimit

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
)

// Response headers. The X-RateLimit-… three are on every answer of a limited route, 200 or 429, and
// describe its tightest window; on a rejection, the window that rejected.
const (
	HeaderLimit      = "X-RateLimit-Limit"     // requests per window
	HeaderRemaining  = "X-RateLimit-Remaining" // requests left in it, never negative
	HeaderWindow     = "X-RateLimit-Window"    // "minute" or "day"
	HeaderRetryAfter = "Retry-After"           // whole seconds, on 429 and 503 (RFC 9110, section 10.2.3)

	// HeaderShouldRetry, "false", tells OpenAI-style and Anthropic-style SDKs not to repeat a call
	// that the day rejected: some would come back in seconds, others sleep for hours.
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
	values := []string{strconv.Itoa(d.Limit), strconv.Itoa(d.Remaining), windowName(d.Window)}
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

// windowName is what the headers and the body call a window.
func windowName(window time.Duration) string {
	if window == day {
		return "day"
	}
	return "minute"
}

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
	Window     string   `json:"window"`
	Limit      int      `json:"limit"`
	Remaining  int      `json:"remaining"`
	RetryAfter int      `json:"retry_after"`
}

// reject answers 429 and ends the chain.
func reject(c *gin.Context, d Decision) {
	window, retryAfter := windowName(d.Window), d.RetryAfterSeconds()
	code := "rate_limit_exceeded"
	if d.Window == day {
		code = "daily_limit_exceeded"
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

// refuse answers without limit headers, those of limiters before included, and ends the chain.
func refuse(c *gin.Context, r refusal) {
	removeLimitHeaders(c.Writer.Header())
	if r.retryAfter != "" {
		c.Header(HeaderRetryAfter, r.retryAfter)
	}
	c.Header("Cache-Control", "no-store")
	abortWithJSON(c, r.status, gin.H{"error": r.err})
}
