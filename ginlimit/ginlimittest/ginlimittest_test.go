package ginlimittest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/ginlimittest"
	"github.com/gin-tiers/ratelimit/ginlimit/headers"
)

func init() { gin.SetMode(gin.TestMode) }

func request(user string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/chat", nil)
	r.Header.Set("User", user)
	return r
}

// A day's rejection, its wait and the moment after it, and scopes; with the kill switch set outside.
func TestADayInNoTime(t *testing.T) {
	t.Setenv(ginlimit.DisabledEnv, "true")
	limits := ginlimittest.New(t)
	router := newRouter(limits.Limiter)
	began := time.Now()
	limits.Take("alice", 40)
	limits.Clock.Advance(time.Hour)
	limits.Take("alice", 60)
	limits.Clock.Advance(time.Minute)
	limits.Scope("images").Take("alice", 1000)
	a := ginlimittest.Do(t, router, request("alice")).HasCode("daily_limit_exceeded").
		HasHeader("X-Should-Retry", "false")
	wait := a.Rejected("day")
	require.Equal(t, 23*time.Hour-time.Minute, wait)
	limits.Clock.Advance(wait - time.Millisecond)
	ginlimittest.Do(t, router, request("alice")).Rejected("day")
	limits.Clock.Advance(time.Millisecond)
	ginlimittest.Do(t, router, request("alice")).Admitted(4)
	ginlimittest.Do(t, router, request("bob")).Admitted(4)
	limits.SetDisabled(true)
	ginlimittest.Do(t, router, request("alice")).Admitted(5)
	require.Less(t, time.Since(began), time.Minute)
}

func TestOtherDialectsAndBodies(t *testing.T) {
	for name, body := range map[string]ginlimit.Body{
		"minute": ginlimit.DefaultBody, "images:minute": ginlimit.ProblemBody,
	} {
		limits := ginlimittest.New(t).Scope("images")
		router := gin.New()
		router.GET("/chat", func(c *gin.Context) { c.Set("user_id", "alice") }, ginlimit.New(limits.Limiter,
			ginlimit.FromContext("user_id", "tier"), ginlimit.WithHeaders(headers.None), ginlimit.WithBody(body)))
		limits.Take("alice", 5)
		require.Equal(t, time.Minute, ginlimittest.Do(t, router, request("alice")).Rejected(name))
	}
}

type tb = ginlimittest.T

// fatal is how an assertion ended a test, "" if it did not.
func fatal(assert func(tb)) (message string) {
	defer func() {
		if p := recover(); p != nil {
			message = fmt.Sprint(p)
		}
	}()
	assert(t)
	return ""
}

// Each assertion can fail, and says what it got.
func TestAssertionsFail(t *testing.T) {
	limits := ginlimittest.New(t)
	router := newRouter(limits.Limiter)
	limits.Take("alice", 5)
	silent := gin.New()
	silent.GET("/chat", func(c *gin.Context) {
		c.Header("Retry-After", c.GetHeader("User"))
		c.Header("Cache-Control", "no-store")
		c.String(http.StatusTooManyRequests, "calm")
	})
	do := ginlimittest.Do
	for want, assert := range map[string]func(t tb){
		"want a request that passes":   func(t tb) { do(t, router, request("alice")).Admitted(0) },
		"passes":                       func(t tb) { do(t, router, request("")).Admitted(0) },
		`X-RateLimit-Remaining is`:     func(t tb) { do(t, router, request("bob")).Admitted(5) },
		"want 429":                     func(t tb) { do(t, router, request("carol")).Rejected("minute") },
		`"minute" has rejected`:        func(t tb) { do(t, router, request("alice")).Rejected("day") },
		`want "daily"`:                 func(t tb) { do(t, router, request("alice")).HasCode("daily") },
		"the body is no JSON":          func(t tb) { do(t, silent, request("1")).HasCode("any") },
		"name the window":              func(t tb) { do(t, silent, request("1")).Rejected("minute") },
		`Retry-After is "soon"`:        func(t tb) { do(t, silent, request("soon")).Rejected("minute") },
		`Retry-After is "0"`:           func(t tb) { do(t, silent, request("0")).Rejected("minute") },
		"user id is empty":             func(t tb) { ginlimittest.New(t).Take("", 1) },
		"not a whole number of second": func(t tb) { ginlimittest.New(t).Take("a", 1, time.Millisecond) },
	} {
		require.Contains(t, fatal(assert), want)
	}
}
