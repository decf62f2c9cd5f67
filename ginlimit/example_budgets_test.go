package ginlimit_test

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/tiers"
)

// Each user has the budget of the user's tier, and all members of an organisation share the organisation's.
func ExampleWithScopeFor() {
	orgTiers := loadTiers(`
fallback: team
tiers:
  team:    {per_minute: 3, per_day: 1000}
  company: {per_minute: 300, per_day: 100000}
`)
	orgOf := ginlimit.TierResolverFunc(func(c *gin.Context) (ginlimit.Subject, error) {
		org := c.GetString("org_id") // the auth middleware has set it
		if org == "" {
			return ginlimit.Subject{}, ginlimit.ErrNoSubject // this caller has no such budget
		}
		return ginlimit.Subject{UserID: org, Tier: "team"}, nil
	})
	limiter := ginlimit.NewMemoryLimiter()
	router := gin.New()
	router.Use(signIn, ginlimit.New(limiter, resolver, ginlimit.WithScopeFor("org", orgTiers, orgOf)))
	router.POST("/v1/chat/completions", chat)

	for _, user := range []string{"alice", "bob", "alice", "bob"} {
		w := post(router, "/v1/chat/completions", "User", user, "Org", "acme")
		fmt.Println(user, answer(w))
	}
	// Output:
	// alice 200
	// bob 200
	// alice 200
	// bob 429 rate_limit_exceeded org
}

// An estimator of your own says what a request may take, and the handler says what it has taken.
func ExampleWithUsage() {
	table := loadTiers(`tiers: {free: {per_minute: 5, per_day: 100, tokens_per_day: 1000}}`)
	estimator := ginlimit.EstimatorFunc(func(c *gin.Context) (ginlimit.Usage, error) {
		most, err := strconv.Atoi(c.Query("max_tokens"))
		return ginlimit.Usage{Tokens: most}, err // an error is answered with 400
	})
	limited := ginlimit.New(ginlimit.NewMemoryLimiter(), resolver,
		ginlimit.WithTiers(table), ginlimit.WithUsage(estimator))
	router := gin.New()
	router.POST("/v1/completions", authenticate, limited, func(c *gin.Context) {
		used := 120 // as your model tells it
		ginlimit.AdmissionFrom(c).Settle(ginlimit.Usage{Tokens: used})
	})

	for _, most := range []int{400, 880, 880} {
		w := post(router, fmt.Sprint("/v1/completions?max_tokens=", most))
		fmt.Println(w.Header().Get("X-RateLimit-Remaining-Tokens"), "tokens left:", answer(w))
	}
	// Output:
	// 600 tokens left: 200
	// 0 tokens left: 200
	// 760 tokens left: 429 tokens_exceeded
}

// An image is reserved at the dearest price, 0.40, and settled at its own. Money is in millionths.
func ExampleAdmissionFrom() {
	table := loadTiers(`tiers: {free: {per_minute: 5, per_day: 100, spend_per_day: 1.00}}`)
	dearest := ginlimit.EstimatorFunc(func(*gin.Context) (ginlimit.Usage, error) {
		return ginlimit.Usage{Spend: 400_000}, nil
	})
	prices := map[string]tiers.Money{"small": 50_000, "large": 400_000}
	limited := ginlimit.New(ginlimit.NewMemoryLimiter(), resolver,
		ginlimit.WithTiers(table), ginlimit.WithUsage(dearest))
	router := gin.New()
	router.POST("/v1/images/:size", authenticate, limited, func(c *gin.Context) {
		price, ok := prices[c.Param("size")]
		if !ok {
			ginlimit.AdmissionFrom(c).Refund() // it costs neither money nor a request
			c.Status(http.StatusNotFound)
			return
		}
		ginlimit.AdmissionFrom(c).Settle(ginlimit.Usage{Spend: price})
	})

	for _, size := range []string{"large", "huge", "small", "large"} {
		w := post(router, "/v1/images/"+size)
		fmt.Println(size, w.Code, w.Header().Get("X-RateLimit-Remaining-Spend"))
	}
	// Output:
	// large 200 0.60
	// huge 404 0.20
	// small 200 0.20
	// large 200 0.15
}

// A user may have one request in progress. A second one is rejected, and with Redis so on every replica.
func ExampleWithConcurrency() {
	table := loadTiers(`tiers: {free: {per_minute: 60, per_day: 1000, concurrent: 1}}`)
	limited := ginlimit.New(ginlimit.NewMemoryLimiter(), resolver,
		ginlimit.WithTiers(table), ginlimit.WithConcurrency())
	started, finish := make(chan bool), make(chan bool)
	router := gin.New()
	router.POST("/v1/videos", authenticate, limited, func(*gin.Context) { // a slow handler
		started <- true
		<-finish
	})

	first := make(chan int)
	go func() { first <- post(router, "/v1/videos").Code }()
	<-started
	second := post(router, "/v1/videos")
	fmt.Println("second:", answer(second))
	finish <- true
	fmt.Println("first:", <-first)
	// Output:
	// second: 429 too_many_concurrent_requests
	// first: 200
}

// A large model costs as much as three requests.
func ExampleWithWeight() {
	weights := map[string]int{"small": 1, "large": 3}
	weigh := func(c *gin.Context) (int, error) {
		weight, ok := weights[c.Param("model")]
		if !ok {
			return 0, errors.New("no such model") // it is answered with 400
		}
		return weight, nil
	}
	limited := ginlimit.New(ginlimit.NewMemoryLimiter(), resolver, ginlimit.WithWeight(weigh))
	router := gin.New()
	router.POST("/v1/models/:model", authenticate, limited, chat)

	for _, model := range []string{"large", "large", "small", "huge"} {
		fmt.Println(model, answer(post(router, "/v1/models/"+model)))
	}
	// Output:
	// large 200
	// large 429 rate_limit_exceeded
	// small 200
	// huge 400 invalid_request
}

// The provider allows ten requests a minute for all callers together, of which the tier free may use two.
func ExampleWithUpstream() {
	provider := ginlimit.Upstream{
		Name: "openai", PerMinute: 10,
		Share: map[tiers.Tier]float64{tiers.Free: 0.2}, // pro, which is not named, may use all of it
	}
	limited := ginlimit.New(ginlimit.NewMemoryLimiter(), resolver, ginlimit.WithUpstream(provider))
	router := gin.New()
	router.POST("/v1/chat/completions", signIn, limited, chat)

	for _, caller := range []struct{ user, tier string }{
		{"alice", "free"}, {"bob", "free"}, {"carol", "free"}, {"dave", "pro"},
	} {
		w := post(router, "/v1/chat/completions", "User", caller.user, "Tier", caller.tier)
		fmt.Println(caller.tier, answer(w))
	}
	// Output:
	// free 200
	// free 200
	// free 503 upstream_capacity
	// pro 200
}

// If the provider asks to wait, no process calls it until that time.
func ExampleWithUpstream_overloaded() {
	provider := ginlimit.Upstream{Name: "openai", PerMinute: 500}
	limited := ginlimit.New(ginlimit.NewMemoryLimiter(), resolver, ginlimit.WithUpstream(provider))
	router := gin.New()
	router.POST("/v1/chat/completions", authenticate, limited, func(c *gin.Context) {
		fmt.Println("the provider is called") // its answer is handed on, as a proxy does
		c.Header("Retry-After", "20")
		c.Status(http.StatusTooManyRequests)
	})

	for range 2 {
		fmt.Println(answer(post(router, "/v1/chat/completions")))
	}
	// Output:
	// the provider is called
	// 429
	// 503 upstream_capacity
}

// What a provider's failure has cost goes back.
func ExampleWithRefundOn() {
	failed := func(c *gin.Context) bool { return c.Writer.Status() >= http.StatusInternalServerError }
	limited := ginlimit.New(ginlimit.NewMemoryLimiter(), resolver, ginlimit.WithRefundOn(failed))
	answers := []int{http.StatusOK, http.StatusBadGateway, http.StatusOK} // of the provider
	router := gin.New()
	router.POST("/v1/chat/completions", authenticate, limited, func(c *gin.Context) {
		c.Status(answers[0])
		answers = answers[1:]
	})

	for range 3 {
		w := post(router, "/v1/chat/completions")
		fmt.Println(w.Code, w.Header().Get("X-RateLimit-Remaining"))
	}
	// Output:
	// 200 4
	// 502 3
	// 200 3
}
