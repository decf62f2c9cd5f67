package openai

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit"
)

// Meter returns a middleware that reads the usage out of what handlers write, JSON or event stream, and
// settles it. Mount it behind the limiter (after it in the chain) and before whatever answers: a handler, or
// a reverse proxy with FlushInterval -1. It settles when these have returned, panicked or been left by the
// client, and its word follows those of the handlers.
//
// What it settles:
//
//   - usage in the answer: that, whatever the status. Tokens are input and output together, cached input
//     included; the spend is their price (WithPrices), cached input at its own. Numbers below 0 count as 0,
//     numbers above 100,000,000 as that, and a warning says so;
//   - no usage, or none of the whole answer since it was cut off: the prompt as Estimator counts it, or as
//     the provider reported it so far, plus the text that was streamed. Never 0;
//   - a status from 300 on, or an answer that is only the length of the prompt (count_tokens): nothing
//     was used. The request itself still counts; ginlimit.WithRefundOn gives that back;
//   - the client left, or a handler panicked, before an answer that is no stream began: nothing is said, so
//     that the reservation stands. The provider may have written all of it. The same holds for connections
//     that a handler has hijacked, for what is compressed other than by gzip, and where neither request nor
//     answer looks like a model's.
//
// All bytes, the status and the header pass through as they are, with these exceptions, all for requests of
// a known format only. A streamed completion is forwarded with stream_options.include_usage, since OpenAI
// reports no usage otherwise; if the client has not asked for that itself, the chunk that holds nothing but
// the usage is taken out of the stream, and the other chunks have a "usage": null. Such a stream is passed
// on event by event, and without a Content-Length. WithoutStreamOptions switches that off. And
// Accept-Encoding becomes identity, so that answers can be read; one that is compressed by gzip nevertheless
// is read too, and passed on as it is.
//
// A GET below /responses/ or /completions/ brings back a stored answer, which was charged when it was made:
// it is left alone.
//
// Memory for each request: its body, up to WithMaxBody, and at most 1.3 MiB of the answer. Of longer answers
// the beginning and the end are searched for the usage. Where two Meters meet one request, the inner one
// settles. Gin's HandleContext settles once, too. The middleware is safe for concurrent use.
func Meter(opts ...Option) gin.HandlerFunc {
	m := &meter{
		options:  newOptions(opts),
		counter:  newCounter(),
		warnings: warnings{every: time.Second},
	}
	return m.handle
}

type meter struct {
	options
	counter  counter
	warnings warnings
}

func (m *meter) handle(c *gin.Context) {
	if retrieves(c.Request) {
		c.Next()
		return
	}
	ctx := c.Request.Context() // handlers may put another one, and end it
	req, err := readRequest(c.Request, m.maxBody)
	if err != nil {
		req = &request{} // handlers meet the same error, and answer it
	}
	p := enter(c)
	defer p.leave()
	p.strips = m.askForUsage(c.Request, req) || p.strips

	w := &writer{ResponseWriter: c.Writer, strips: p.strips}
	if req.stream {
		w.answer.expected = stream
	}
	c.Writer = w
	returned := false
	defer func() {
		if c.Writer == gin.ResponseWriter(w) { // HandleContext has put Gin's own
			c.Writer = w.ResponseWriter
		}
		rest := w.finish()
		if !p.superseded {
			left := errors.Is(ctx.Err(), context.Canceled)
			failed := w.Status() >= http.StatusMultipleChoices || returned && !w.Written() && len(c.Errors) > 0
			m.settle(c, req, w, outcome{returned: returned, left: left, failed: failed})
		}
		_ = w.release(rest) // its failure is that of the connection, and nobody waits for it
	}()
	c.Next()
	returned = true
}

// retrieves reports whether a request asks for an answer that was given, and charged, before.
func retrieves(r *http.Request) bool {
	path := r.URL.Path
	return r.Method == http.MethodGet &&
		(strings.Contains(path, "/responses/") || strings.Contains(path, "/completions/"))
}

// askForUsage prepares the request for the provider, and reports whether the client does not expect the
// usage.
func (m *meter) askForUsage(r *http.Request, req *request) bool {
	if req.format == unknown {
		return false
	}
	if r.Header.Get("Accept-Encoding") != "" {
		r.Header.Set("Accept-Encoding", "identity")
	}
	b, ok := r.Body.(*body)
	if !ok || !m.asksForUsage {
		return false
	}
	text, changed := req.asksForUsage(b.text)
	if changed {
		req.asked = true
		b.replace(r, text)
	}
	return changed
}

func (m *meter) settle(c *gin.Context, req *request, w *writer, o outcome) {
	used, known := m.used(req, w, o)
	if known {
		ginlimit.AdmissionFrom(c).Settle(used)
	}
	if w.answer.usage.implausible {
		m.warnings.warn(c.Request.Context(), "openai: a provider's usage is not plausible and was clamped")
	}
}
