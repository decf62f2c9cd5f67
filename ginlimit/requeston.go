package ginlimit

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/plan"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/request"
)

type requestKey struct{}

// requestOn is a request on the gin.Context c. It is also the context of its http.Request, where it is found.
type requestOn struct {
	context.Context
	request.Request
	admission Admission
	answered  bool // by a limiter: it is rejected, or its handlers run
	returned  bool // its handlers have, and none has panicked

	c        *gin.Context
	dialects *dialects   // of all mounts that it has met
	after    *afterwards // nil: nothing to do
	writer   onceHeaders // of the handlers
}

// afterwards is what remains to be done after the handler has returned.
type afterwards struct {
	passed       []*middleware // that read the handler's answer
	reservations []reservation // whose settlement is observed
}

func (r *requestOn) afterwards() *afterwards {
	if r.after == nil {
		r.after = &afterwards{}
	}
	return r.after
}

// forget drops what reads the handler's answer, because there is none.
func (a *afterwards) forget() {
	if a != nil {
		a.passed = nil
	}
}

// Value returns the request itself for requestKey.
func (r *requestOn) Value(key any) any {
	if key == (requestKey{}) {
		return r
	}
	return r.Context.Value(key)
}

// requestOf returns the state of the HTTP request, and whether it is new: it is for the first limiter that
// the request meets. The state is in the context of c.Request, because Gin's HandleContext clears c.Keys.
func requestOf(c *gin.Context) (r *requestOn, first bool) {
	if r := requestIn(c); r != nil {
		return r, false
	}
	r = &requestOn{Context: c.Request.Context(), c: c}
	r.Init()
	c.Request = c.Request.WithContext(r)
	return r, true
}

// requestIn returns the state of the HTTP request, or nil if it has none. Requests that a handler sends may
// inherit its context; they have another gin.Context, or the same one after this request is over.
func requestIn(c *gin.Context) *requestOn {
	if c.Request == nil {
		return nil
	}
	if r, ok := c.Request.Context().Value(requestKey{}).(*requestOn); ok && r.c == c && !r.admission.over() {
		return r
	}
	return nil
}

// release gives everything back if the first limiter has not come to an answer, because an observer, say, has
// panicked.
func (r *requestOn) release(ctx context.Context) {
	if !r.answered {
		r.Finish(ctx, nil, true)
	}
}

// serve runs the rest of the chain, and then what remains to be done for the request.
func (r *requestOn) serve(ctx context.Context) {
	defer r.tellSettled(ctx)
	defer r.settle(ctx) // also after a panic
	defer r.judge()     // likewise
	r.c.Next()
	r.returned = true
}

// judge lets the limiters read the handler's answer. If the handler has panicked before its answer began,
// that is a 500, which whoever recovers will write.
func (r *requestOn) judge() {
	if r.after == nil {
		return
	}
	if !r.returned && !r.c.Writer.Written() {
		r.c.Status(http.StatusInternalServerError)
	}
	for _, m := range r.after.passed {
		if m.refundOn != nil && m.refundOn(r.c) {
			r.admission.Refund()
		}
		if m.upstream != nil {
			m.closeUpstream(r.c)
		}
	}
}

// settle does what the handler has recorded.
func (r *requestOn) settle(ctx context.Context) {
	word, usage := r.admission.end()
	switch word {
	case saidNothing:
		r.Finish(ctx, nil, false)
	case saidRefund:
		r.Finish(ctx, nil, true)
	case saidUsage:
		r.Finish(ctx, &plan.Costs{Tokens: usage.Tokens, Spend: usage.Spend}, false)
	}
}
