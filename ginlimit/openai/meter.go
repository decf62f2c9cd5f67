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

// Meter returns a middleware that reads the usage from what handlers write, JSON or event stream, and settles
// it. Mount it after the limiter and before whatever answers: a handler, or a reverse proxy with
// FlushInterval -1. It settles after these have returned or panicked, even if the client has left, and its
// settlement replaces what handlers recorded.
//
// What it settles:
//
//   - the answer has usage: that usage, with any status. Tokens are input and output together, with cached
//     input; the spend is their price (WithPrices), where cached input has its own price. A number below 0
//     counts as 0, a number above 100,000,000 as 100,000,000, and a warning is logged;
//   - the answer has no usage, or was cut off before its final usage: the prompt as Estimator counts it, or
//     as the provider reported it so far, plus the streamed text. Never 0;
//   - the status is 300 or above without usage, or the answer is only the length of the prompt
//     (count_tokens): nothing. The request itself still counts; ginlimit.WithRefundOn gives that back;
//   - the client left, or a handler panicked, before an answer that is not a stream began: Meter records
//     nothing, so the reservation stays taken. The provider may have produced the whole answer. The same is
//     true for hijacked connections, for compression other than gzip, and if neither request nor answer looks
//     like a model's.
//
// All bytes, the status and the header pass through unchanged, with these exceptions, only for requests of a
// known format. A streamed completion is forwarded with stream_options.include_usage, because OpenAI reports
// no usage otherwise. If the client did not ask for that itself, the chunk that holds only the usage is
// removed from the stream; the other chunks have a "usage": null. Such a stream is passed on event by event,
// without a Content-Length. WithoutStreamOptions switches that off. And Accept-Encoding becomes identity, so
// that answers can be read. An answer that is nevertheless compressed by gzip is also read, and passed on
// unchanged.
//
// A GET below /responses/ or /completions/ returns a stored answer, which was charged when it was made: Meter
// ignores it.
//
// Memory for each request: its body, up to WithMaxBody, and at most 1.3 MiB of the answer (2.6 MiB if it is
// compressed). In longer answers the beginning and the end are searched for the usage. If a request passes
// two Meters, the inner one settles. Gin's HandleContext settles once, too. The middleware is safe for
// concurrent use.
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
	ctx := c.Request.Context() // handlers may set another one, and end it
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

// retrieves reports whether a request asks for a stored answer, which was charged before.
func retrieves(r *http.Request) bool {
	path := r.URL.Path
	return r.Method == http.MethodGet &&
		(strings.Contains(path, "/responses/") || strings.Contains(path, "/completions/"))
}

// askForUsage prepares the request for the provider. It reports whether it had to add the request for usage,
// so that the client does not expect the usage.
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
