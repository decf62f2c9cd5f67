package ginlimittest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"

	"github.com/gin-tiers/ratelimit/ginlimit"
)

// Answer is the answer of a handler. If one of its assertions does not hold, the test ends.
type Answer struct {
	*http.Response
	Text string // the body, already read
	t    T
}

// Do sends a request to a handler, such as a *gin.Engine. A request without a body can be sent again.
func Do(t T, h http.Handler, r *http.Request) Answer {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return Answer{w.Result(), w.Body.String(), t}
}

// Admitted asserts that the limiter admitted the request, whatever the handler answered, and how many
// requests remain, in the header of headers.Default, OpenAI or Anthropic. For other dialects use HasHeader.
func (a Answer) Admitted(remaining int) Answer {
	a.t.Helper()
	if a.refused() {
		a.t.Fatalf("got %d %s, want a request that passes", a.StatusCode, a.Text)
	}
	name := ginlimit.HeaderRemaining
	for _, other := range []string{"X-RateLimit-Remaining-Requests", "Anthropic-RateLimit-Requests-Remaining"} {
		if a.Header.Get(name) == "" && a.Header.Get(other) != "" {
			name = other
		}
	}
	return a.HasHeader(name, strconv.Itoa(remaining))
}

// refused reports whether a limiter has answered: it sets no remaining budget on its own 503, 401 and 400.
func (a Answer) refused() bool {
	switch a.StatusCode {
	case http.StatusTooManyRequests:
		return true
	case http.StatusServiceUnavailable, http.StatusUnauthorized, http.StatusBadRequest:
		return a.Header.Get(ginlimit.HeaderRemaining) == ""
	}
	return false
}

// Rejected asserts that this window ("minute", "day", "tokens-minute", "concurrent") rejected the request:
// status 429, a Retry-After of whole seconds, no-store, nothing remaining, and the window's name in the
// headers or the body (in ProblemBody with the scope, "images:day"). It returns how long to wait.
func (a Answer) Rejected(window string) (wait time.Duration) {
	a.t.Helper()
	if a.StatusCode != http.StatusTooManyRequests {
		a.t.Fatalf("got %d %s, want 429", a.StatusCode, a.Text)
	}
	seconds, err := strconv.Atoi(a.Header.Get(ginlimit.HeaderRetryAfter))
	if err != nil || seconds < 1 {
		a.t.Fatalf("Retry-After is %q, want whole seconds, at least 1", a.Header.Get(ginlimit.HeaderRetryAfter))
	}
	a.HasHeader("Cache-Control", "no-store")
	if a.Header.Get(ginlimit.HeaderRemaining) != "" {
		a.HasHeader(ginlimit.HeaderRemaining, "0")
	}
	switch got := a.window(); got {
	case window:
	case "":
		a.t.Fatalf("neither headers nor body name the window that rejected: %s", a.Text)
	default:
		a.t.Fatalf("the window %q has rejected, want %q", got, window)
	}
	return time.Duration(seconds) * time.Second
}

// window is the window that rejected, or "" if the answer does not say.
func (a Answer) window() string {
	if name := a.Header.Get(ginlimit.HeaderWindow); name != "" {
		return name
	}
	var body struct {
		Window   string   `json:"window"`
		Violated []string `json:"violated-policies"`
	}
	_ = json.Unmarshal([]byte(a.Text), &body) // on an error the fields stay empty
	if body.Window == "" && len(body.Violated) > 0 {
		return body.Violated[0]
	}
	return body.Window
}

// HasHeader asserts that the answer has the header once, with this value.
func (a Answer) HasHeader(name, value string) Answer {
	a.t.Helper()
	if got := a.Header.Values(name); len(got) != 1 || got[0] != value {
		a.t.Fatalf("header %s is %q, want %q once", name, got, value)
	}
	return a
}

// HasCode asserts the code of a body by DefaultBody or ProblemBody, such as "daily_limit_exceeded".
func (a Answer) HasCode(code string) Answer {
	a.t.Helper()
	var body struct {
		Code  string
		Error struct{ Code string }
	}
	if err := json.Unmarshal([]byte(a.Text), &body); err != nil {
		a.t.Fatalf("the body is no JSON: %v: %s", err, a.Text)
	}
	if body.Code == "" {
		body.Code = body.Error.Code
	}
	if body.Code != code {
		a.t.Fatalf("code is %q, want %q: %s", body.Code, code, a.Text)
	}
	return a
}
