package openai

import (
	"context"
	"sync/atomic"

	"github.com/gin-gonic/gin"
)

// passage is one request's way through one Meter. It is found in the context of the request by a Meter that
// comes after, in the same chain or in the one that Gin's HandleContext runs.
type passage struct {
	c          *gin.Context
	strips     bool // the usage was asked for on behalf of the client
	superseded bool // a Meter that came after settles
	over       atomic.Bool
}

type passageKey struct{}

// enter begins a passage. Requests that a handler makes may inherit the context; they have a gin.Context of
// their own, or c's when this request is over.
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
