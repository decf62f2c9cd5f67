package openai

import (
	"context"
	"sync/atomic"

	"github.com/gin-gonic/gin"
)

// passage is one request's way through one Meter. A later Meter, in the same chain or in that of Gin's
// HandleContext, finds it in the context of the request.
type passage struct {
	c          *gin.Context
	strips     bool // the usage was asked for on behalf of the client
	superseded bool // a later Meter settles
	over       atomic.Bool
}

type passageKey struct{}

// enter begins a passage. Requests that a handler sends may inherit the context; they have another
// gin.Context, or the same one after this request is over.
func enter(c *gin.Context) *passage {
	p := &passage{c: c}
	ctx := c.Request.Context()
	if outer, ok := ctx.Value(passageKey{}).(*passage); ok && outer.c == c && !outer.over.Load() {
		outer.superseded = true
		p.strips = outer.strips
	}
	c.Request = c.Request.WithContext(context.WithValue(ctx, passageKey{}, p))
	return p
}

func (p *passage) leave() { p.over.Store(true) }
