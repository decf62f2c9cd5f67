package ginlimit_test

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/ginlimittest"
	"github.com/gin-tiers/ratelimit/ginlimit/headers"
)

// Clients that know OpenAI's headers find those beside the default ones.
func ExampleWithHeaders() {
	limited := ginlimit.New(ginlimit.NewMemoryLimiter(), resolver,
		ginlimit.WithHeaders(headers.Default, headers.OpenAI))
	router := gin.New()
	router.POST("/v1/chat/completions", authenticate, limited, chat)

	h := post(router, "/v1/chat/completions").Header()
	fmt.Println(h.Get("X-RateLimit-Limit"), h.Get("X-RateLimit-Remaining"), h.Get("X-RateLimit-Window"))
	fmt.Println(h.Get("X-RateLimit-Remaining-Requests"), h.Get("X-RateLimit-Reset-Requests"))
	// Output:
	// 5 4 minute
	// 4 1m0s
}

// The headers of IETF's draft tell of all windows.
func ExampleWithHeaders_ietf() {
	limited := ginlimit.New(ginlimit.NewMemoryLimiter(), resolver,
		ginlimit.WithHeaders(headers.IETF), ginlimit.WithAtomicWindows())
	router := gin.New()
	router.POST("/v1/chat/completions", authenticate, limited, chat)

	h := post(router, "/v1/chat/completions").Header()
	fmt.Println(h.Get("RateLimit-Policy"))
	fmt.Println(h.Get("RateLimit"))
	// Output:
	// "minute";q=5;w=60, "day";q=100;w=86400
	// "minute";r=4;t=60, "day";r=99;t=86400
}

// A service with an error format of its own keeps it.
func ExampleWithBody() {
	body := func(c *gin.Context, r ginlimit.Refusal) {
		c.JSON(r.Status, gin.H{"error": r.Code, "wait": r.RetryAfter, "window": r.Decision.Name()})
	}
	clock := ginlimittest.NewClock()
	limiter := ginlimit.NewMemoryLimiter(ginlimit.WithClock(clock.Now))
	router := gin.New()
	router.Use(signIn, ginlimit.New(limiter, resolver, ginlimit.WithBody(body),
		ginlimit.WithTiers(loadTiers(`tiers: {free: {per_minute: 1, per_day: 100}}`))))
	router.POST("/v1/chat/completions", chat)

	for _, user := range []string{"alice", "alice", ""} {
		fmt.Println(post(router, "/v1/chat/completions", "User", user).Body)
	}
	// Output:
	// {"error":"rate_limit_exceeded","wait":60,"window":"minute"}
	// {"error":"unauthenticated","wait":0,"window":""}
}

// Errors are problem details, as RFC 9457 has them.
func ExampleProblemBody() {
	clock := ginlimittest.NewClock()
	limiter := ginlimit.NewMemoryLimiter(ginlimit.WithClock(clock.Now))
	limited := ginlimit.New(limiter, resolver, ginlimit.WithBody(ginlimit.ProblemBody),
		ginlimit.WithTiers(loadTiers(`tiers: {free: {per_minute: 1, per_day: 100}}`)))
	router := gin.New()
	router.POST("/v1/chat/completions", authenticate, limited, chat)

	_ = post(router, "/v1/chat/completions")
	w := post(router, "/v1/chat/completions")
	var body bytes.Buffer
	_ = json.Indent(&body, w.Body.Bytes(), "", "  ")
	fmt.Println(w.Header().Get("Content-Type"))
	fmt.Println(&body)
	// Output:
	// application/problem+json
	// {
	//   "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
	//   "title": "Request cannot be satisfied as assigned quota has been exceeded",
	//   "status": 429,
	//   "detail": "Rate limit exceeded: 1 request per minute. Retry in 60 s.",
	//   "violated-policies": [
	//     "minute"
	//   ],
	//   "code": "rate_limit_exceeded",
	//   "retry_after": 60
	// }
}

// Errors are in the envelope that Anthropic's SDKs decode.
func ExampleAnthropicBody() {
	limited := ginlimit.New(ginlimit.NewMemoryLimiter(), resolver,
		ginlimit.WithBody(ginlimit.AnthropicBody), ginlimit.WithHeaders(headers.Anthropic))
	router := gin.New()
	router.POST("/v1/messages", signIn, limited, chat)

	fmt.Println(post(router, "/v1/messages").Body) // nobody is signed in
	// Output: {"error":{"message":"Nobody is signed in.","type":"authentication_error"},"type":"error"}
}
