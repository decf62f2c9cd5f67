package ginlimittest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/ginlimittest"
)

// newRouter is the application's own.
func newRouter(l *ginlimit.Limiter) *gin.Engine {
	router := gin.New()
	router.Use(func(c *gin.Context) { c.Set("user_id", c.GetHeader("User")) },
		ginlimit.New(l, ginlimit.FromContext("user_id", "tier"), ginlimit.WithAtomicWindows()))
	router.GET("/chat", func(c *gin.Context) { c.String(http.StatusOK, "hello") })
	return router
}

// A 429, its wait and the moment after it; t is the test's *testing.T.
func Example() {
	limits := ginlimittest.New(t)
	router := newRouter(limits.Limiter)
	request := httptest.NewRequest(http.MethodGet, "/chat", nil)
	request.Header.Set("User", "alice")

	limits.Take("alice", 5) // all of free's minute
	wait := ginlimittest.Do(t, router, request).HasCode("rate_limit_exceeded").Rejected("minute")
	fmt.Println("rejected for", wait)
	limits.Clock.Advance(wait)
	ginlimittest.Do(t, router, request).Admitted(4)
	fmt.Println("admitted")
	// Output:
	// rejected for 1m0s
	// admitted
}

// t stands for the *testing.T that an example has not.
var t exampleT

type exampleT struct{}

func (exampleT) Helper()                           {}
func (exampleT) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
