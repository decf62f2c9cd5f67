package headers

import (
	"net/http"
	"strconv"
	"time"
)

// RetryAfterMS is OpenAI's header with the wait of a rejection in milliseconds.
const RetryAfterMS = "Retry-After-Ms"

// OpenAI is x-ratelimit-{limit,remaining,reset}-{requests,tokens} of the tightest window of each unit, or of
// the window that rejected, with resets such as "1s", "6m0s" and "12ms"; and retry-after-ms on a rejection.
var OpenAI = New(writeOpenAI,
	"X-RateLimit-Limit-Requests", "X-RateLimit-Remaining-Requests", "X-RateLimit-Reset-Requests",
	LimitTokens, RemainingTokens, "X-RateLimit-Reset-Tokens", RetryAfterMS)

func writeOpenAI(h http.Header, r Response) {
	for _, b := range []Budget{r.Requests, r.Tokens} {
		if b.Name == "" {
			continue
		}
		h.Set("X-RateLimit-Limit-"+string(b.Unit), strconv.Itoa(b.Limit))
		h.Set("X-RateLimit-Remaining-"+string(b.Unit), strconv.Itoa(b.Remaining))
		h.Set("X-RateLimit-Reset-"+string(b.Unit), ceil(b.Reset, time.Millisecond).String())
	}
	if r.Rejected.Name != "" {
		h.Set(RetryAfterMS, strconv.FormatInt(ceil(r.Rejected.Reset, time.Millisecond).Milliseconds(), 10))
	}
}

// Anthropic is anthropic-ratelimit-{requests,tokens}-{limit,remaining,reset} of the tightest window of each
// unit, or of the window that rejected. A reset is a date and time in UTC, in whole seconds (RFC 3339).
var Anthropic = New(writeAnthropic,
	"Anthropic-RateLimit-Requests-Limit", "Anthropic-RateLimit-Requests-Remaining",
	"Anthropic-RateLimit-Requests-Reset", "Anthropic-RateLimit-Tokens-Limit",
	"Anthropic-RateLimit-Tokens-Remaining", "Anthropic-RateLimit-Tokens-Reset")

func writeAnthropic(h http.Header, r Response) {
	for _, b := range []Budget{r.Requests, r.Tokens} {
		if b.Name == "" {
			continue
		}
		reset := r.Now.Add(b.Reset).Add(time.Second - 1).Truncate(time.Second) // rounded up
		h.Set("Anthropic-RateLimit-"+string(b.Unit)+"-Limit", strconv.Itoa(b.Limit))
		h.Set("Anthropic-RateLimit-"+string(b.Unit)+"-Remaining", strconv.Itoa(b.Remaining))
		h.Set("Anthropic-RateLimit-"+string(b.Unit)+"-Reset", reset.UTC().Format(time.RFC3339))
	}
}

func ceil(d, unit time.Duration) time.Duration { return (d + unit - 1) / unit * unit }
