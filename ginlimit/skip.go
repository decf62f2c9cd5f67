package ginlimit

import (
	"net/http"

	"github.com/gin-gonic/gin"
)

// WithSkip skips the limiter if f returns true: no caller is resolved, nothing is counted or observed, and no
// headers are set. CORS preflights (OPTIONS with Access-Control-Request-Method) are always skipped, because a
// browser sends them without credentials. It panics on nil.
func WithSkip(f func(c *gin.Context) bool) Option {
	mustNotBeNil("WithSkip: function", f)
	return func(o *options) { o.skip = f }
}

func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
}
