package ginlimit

import (
	"net/http"

	"github.com/gin-gonic/gin"
)

// WithSkip lets requests pass of which f returns true: no caller is resolved, nothing is counted, observed or
// told in headers. CORS preflights, OPTIONS with Access-Control-Request-Method, are skipped in any case: a
// browser sends them without credentials. It panics on nil.
func WithSkip(f func(c *gin.Context) bool) Option {
	mustNotBeNil("WithSkip: function", f)
	return func(o *options) { o.skip = f }
}

func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
}
