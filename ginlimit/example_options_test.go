package ginlimit_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/ginlimittest"
	"github.com/gin-tiers/ratelimit/ginlimit/headers"
	"github.com/gin-tiers/ratelimit/tiers"
	"github.com/gin-tiers/ratelimit/tiers/watch"
)

// All windows are decided in one call, all or none: what the day rejects takes nothing of the minute.
func ExampleWithAtomicWindows() {
	table := loadTiers(`tiers: {free: {per_minute: 2, per_day: 3}}`)
	clock := ginlimittest.NewClock()
	limiter := ginlimit.NewMemoryLimiter(ginlimit.WithClock(clock.Now))
	router := gin.New()
	router.Use(authenticate,
		ginlimit.New(limiter, resolver, ginlimit.WithTiers(table), ginlimit.WithAtomicWindows()))
	router.POST("/v1/chat/completions", chat)

	for range 4 {
		clock.Advance(30 * time.Second)
		w := post(router, "/v1/chat/completions")
		fmt.Println(w.Code, w.Header().Get("X-RateLimit-Remaining"), w.Header().Get("X-RateLimit-Window"))
	}
	minute, _ := limiter.Peek(context.Background(), "user_8421", 2, time.Minute)
	fmt.Println("left in the minute:", minute.Remaining)
	// Output:
	// 200 1 minute
	// 200 0 minute
	// 200 0 minute
	// 429 0 day
	// left in the minute: 1
}

// The list of models is served while Redis is down, and a chat, which costs money, is not.
func ExampleWithFailurePolicy() {
	limiter := ginlimit.NewLimiter(redisThatIsDown())
	router := gin.New()
	router.Use(authenticate)
	router.GET("/v1/models",
		ginlimit.New(limiter, resolver, ginlimit.WithFailurePolicy(ginlimit.FailOpen())), chat)
	router.POST("/v1/chat/completions", ginlimit.New(limiter, resolver), chat) // FailClosed

	fmt.Println(answer(get(router, "/v1/models")))
	w := post(router, "/v1/chat/completions")
	fmt.Println(answer(w), w.Header().Get("Retry-After"))
	// Output:
	// 200
	// 503 rate_limiter_unavailable 1
}

// While Redis is down, each of three replicas admits a third of every limit.
func ExampleFailLocal() {
	local := ginlimit.NewMemoryLimiter(ginlimit.WithReplicas(3))
	limited := ginlimit.New(ginlimit.NewLimiter(redisThatIsDown()), resolver,
		ginlimit.WithTiers(loadTiers(`tiers: {free: {per_minute: 6, per_day: 100}}`)),
		ginlimit.WithFailurePolicy(ginlimit.FailLocal(local)))
	router := gin.New()
	router.POST("/v1/chat/completions", authenticate, limited, chat)

	for range 3 {
		w := post(router, "/v1/chat/completions")
		fmt.Println(w.Code, w.Header().Get("X-RateLimit-Limit"), w.Header().Get("X-RateLimit-Remaining"))
	}
	// Output:
	// 200 2 1
	// 200 2 0
	// 429 2 0
}

// The limits reject nobody yet. A header, the log and the observer tell whom they would reject.
func ExampleWithShadow() {
	limited := ginlimit.New(ginlimit.NewMemoryLimiter(), resolver,
		ginlimit.WithTiers(loadTiers(`tiers: {free: {per_minute: 1, per_day: 100}}`)), ginlimit.WithShadow())
	router := gin.New()
	router.POST("/v1/chat/completions", authenticate, limited, chat)

	for range 2 {
		w := post(router, "/v1/chat/completions")
		fmt.Printf("%d %q\n", w.Code, w.Header().Get(ginlimit.HeaderShadow))
	}
	// Output:
	// 200 ""
	// 200 "minute"
}

// One route of a limited engine is not counted, and needs nobody who is signed in.
func ExampleWithSkip() {
	healthz := func(c *gin.Context) bool { return c.FullPath() == "/healthz" }
	router := gin.New()
	router.Use(signIn, ginlimit.New(ginlimit.NewMemoryLimiter(), resolver, ginlimit.WithSkip(healthz)))
	router.GET("/healthz", chat)
	router.GET("/v1/models", chat)

	fmt.Println(answer(get(router, "/healthz")))
	fmt.Println(answer(get(router, "/v1/models")))
	// Output:
	// 200
	// 401 unauthenticated
}

// The table comes from a file, and a changed file counts at the next request.
func ExampleWithLiveTiers() {
	path := tierFile(`tiers: {free: {per_minute: 1, per_day: 100}}`)
	defer os.Remove(path)
	file, err := watch.Open(path)
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	changed := make(chan error, 1) // for this example: nil in place of the function writes to the log
	go file.Watch(ctx, func(_ *tiers.Store, err error) { changed <- err })
	limited := ginlimit.New(ginlimit.NewMemoryLimiter(), resolver, ginlimit.WithLiveTiers(file))
	router := gin.New()
	router.POST("/v1/chat/completions", authenticate, limited, chat)

	_ = post(router, "/v1/chat/completions")
	fmt.Println(answer(post(router, "/v1/chat/completions")))
	_ = os.Rename(tierFile(`tiers: {free: {per_minute: 20, per_day: 100}}`), path) // an operator raises it
	fmt.Println("changed:", <-changed)
	fmt.Println(answer(post(router, "/v1/chat/completions")))
	// Output:
	// 429 rate_limit_exceeded
	// changed: <nil>
	// 200
}

// Scripts of another origin may read what the limiter says. It stands behind the CORS middleware.
func ExampleWithExposedHeaders() {
	cors := func(c *gin.Context) { c.Header("Access-Control-Expose-Headers", "X-Request-Id") }
	limited := ginlimit.New(ginlimit.NewMemoryLimiter(), resolver,
		ginlimit.WithExposedHeaders(), ginlimit.WithHeaders(headers.IETF))
	router := gin.New()
	router.POST("/v1/chat/completions", cors, authenticate, limited, chat)

	fmt.Println(post(router, "/v1/chat/completions").Header().Get("Access-Control-Expose-Headers"))
	// Output: X-Request-Id, Ratelimit-Policy, Ratelimit, Retry-After, X-Should-Retry
}
