package openai

import (
	"net/http"

	"github.com/gin-tiers/ratelimit/ginlimit"
)

// outcome is how the handlers of a request ended.
type outcome struct {
	returned bool // they did not panic
	left     bool // the client did
	failed   bool // the answer is an error
}

// used returns what the request has used, if that is known. See Meter.
func (m *meter) used(req *request, w *writer, o outcome) (u ginlimit.Usage, known bool) {
	a := &w.answer
	input, cached, output := a.usage.sums()
	switch {
	case w.hijacked:
		return u, false
	case a.final && max(input, 0)+output > 0:
		if input < 0 {
			input = req.promptTokens(m.counter)
		}
		return m.priced(req, a, input, cached, output), true
	case o.failed && !(o.left && w.Status() >= http.StatusInternalServerError):
		// After the client has left, a proxy answers with a 5xx.
		return u, true
	case a.onlyCount && a.form == document && a.textBytes == 0:
		return u, true
	case a.unreadable:
		return u, false
	case a.size == 0 && !req.stream && (o.left || !o.returned):
		return u, false
	}
	written := a.textTokens(m.counter)
	if req.format == unknown && written == 0 {
		return u, false
	}
	if written == 0 && a.form == document {
		// JSON of another kind, or plain text. It may be an image, so charge no more than was reserved.
		written = min(bytesToTokens(a.size), req.outputTokens(&m.options))
	}
	if input <= 0 {
		input, cached = req.promptTokens(m.counter), 0
	}
	return m.priced(req, a, input, cached, max(output, written)), true
}

func (m *meter) priced(req *request, a *answer, input, cached, output int) ginlimit.Usage {
	input, output = min(input, maxTokens), min(output, maxTokens)
	return ginlimit.Usage{
		Tokens: max(input+output, 1),
		Spend:  m.prices.cost(input, min(cached, input), output, a.model, req.model),
	}
}
