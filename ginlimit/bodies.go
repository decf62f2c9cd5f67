package ginlimit

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"
	"github.com/gin-gonic/gin/render"

	"github.com/gin-tiers/ratelimit/ginlimit/headers"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
)

// Refusal is the answer of the middleware instead of the handler's: 429, 400, 401, 403 or 503.
type Refusal struct {
	Status     int
	Type       string   // "rate_limit_error", "invalid_request_error", "permission_error", "api_error", …
	Code       string   // "rate_limit_exceeded", "daily_limit_exceeded", …
	Message    string   // for the caller; nothing internal
	RetryAfter int      // seconds, as in the header; 0 = none
	Decision   Decision // the one that rejected; zero unless Status is 429 or Code "request_exceeds_budget"
}

// Body writes the body of a refusal: DefaultBody, ProblemBody, AnthropicBody or your own function. Before it
// is called, status and headers are set and the chain is aborted. It may change status and headers, but a
// status of success is replaced by the refusal's own. If it writes nothing, DefaultBody does. Its panics are
// passed on; by then everything that a rejected request took has been given back.
type Body func(c *gin.Context, r Refusal)

// WithBody sets the function that writes the bodies of refusals; the default is DefaultBody. It panics on
// nil.
func WithBody(b Body) Option {
	mustNotBeNil("WithBody: body", b)
	return func(o *options) { o.body = b }
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

// DefaultBody writes the error object that OpenAI-style and Anthropic-style SDKs decode. A 429 also has
// "detail", "window", "limit", "remaining", "retry_after" and, if there is one, "scope".
func DefaultBody(c *gin.Context, r Refusal) {
	err := apiError{Message: r.Message, Type: r.Type, Code: r.Code}
	if r.Status != http.StatusTooManyRequests {
		writeJSON(c, r.Status, "", gin.H{"error": err})
		return
	}
	writeJSON(c, r.Status, "", rejectionBody{
		Error: err, Detail: "Rate limit exceeded", Scope: r.Decision.Scope, Window: r.Decision.Name(),
		Limit: json.Number(amount(r.Decision, r.Decision.Limit)), RetryAfter: r.RetryAfter,
	})
}

// problem is a problem details object.
type problem struct {
	Type             string   `json:"type"`
	Title            string   `json:"title"`
	Status           int      `json:"status"`
	Detail           string   `json:"detail"`
	ViolatedPolicies []string `json:"violated-policies,omitempty"`
	Code             string   `json:"code"`
	RetryAfter       int      `json:"retry_after,omitempty"`
}

// ProblemBody writes application/problem+json (RFC 9457). The type is quota-exceeded on a 429, with
// "violated-policies" named as by headers.IETF; temporary-reduced-capacity on a 503; otherwise about:blank.
// The members "code" and "retry_after" are those of DefaultBody.
func ProblemBody(c *gin.Context, r Refusal) {
	p := problem{
		Type: "about:blank", Title: http.StatusText(r.Status), Status: r.Status,
		Detail: r.Message, Code: r.Code, RetryAfter: r.RetryAfter,
	}
	switch r.Status {
	case http.StatusTooManyRequests:
		p.Type = "https://iana.org/assignments/http-problem-types#quota-exceeded"
		p.Title = "Request cannot be satisfied as assigned quota has been exceeded"
		rejected := headers.Budget{Name: r.Decision.Name(), Scope: r.Decision.Scope}
		p.ViolatedPolicies = []string{headers.PolicyName(rejected)}
	case http.StatusServiceUnavailable:
		p.Type = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
		p.Title = "Request cannot be satisfied due to temporary server capacity constraints"
	}
	writeJSON(c, r.Status, "application/problem+json", p)
}

// AnthropicBody writes the envelope of Anthropic's API: {"type": "error", "error": {"type", "message"}}.
func AnthropicBody(c *gin.Context, r Refusal) {
	writeJSON(c, r.Status, "", gin.H{"type": "error", "error": gin.H{"type": r.Type, "message": r.Message}})
}

// writeJSON writes a body, even if a middleware before, such as one for streams, has set another type. An
// empty contentType is that of JSON.
func writeJSON(c *gin.Context, status int, contentType string, body any) {
	h := c.Writer.Header()
	h.Del("Content-Type")
	if contentType != "" {
		h.Set("Content-Type", contentType)
	}
	c.Render(status, render.JSON{Data: body})
}

// abort ends the chain with a refusal.
func (m *middleware) abort(c *gin.Context, r Refusal) {
	h := c.Writer.Header()
	if r.RetryAfter > 0 {
		h.Set(HeaderRetryAfter, strconv.Itoa(r.RetryAfter))
	}
	longWindow := r.Decision.Budget == "" && r.Decision.Window > budget.Hour
	if longWindow && r.Status == http.StatusTooManyRequests || r.RetryAfter > 3600 {
		h.Set(HeaderShouldRetry, "false")
	}
	h.Set("Cache-Control", "no-store") // RFC 6585, section 4
	c.Abort()
	w := &refusalWriter{ResponseWriter: c.Writer, status: r.Status}
	c.Writer = w
	defer func() { c.Writer = w.ResponseWriter }()
	c.Status(r.Status)
	m.body(c, r)
	if c.Writer.Size() <= 0 && c.Writer.Status() == r.Status {
		DefaultBody(c, r)
	}
}

// refusalWriter keeps a refusal from having a status of success.
type refusalWriter struct {
	gin.ResponseWriter
	status int
}

func (w *refusalWriter) WriteHeader(status int) {
	if status < http.StatusMultipleChoices {
		status = w.status
	}
	w.ResponseWriter.WriteHeader(status)
}

// WriteHeaderNow leaves the header open for the body that may still come.
func (w *refusalWriter) WriteHeaderNow() {}
