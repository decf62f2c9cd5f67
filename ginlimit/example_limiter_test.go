package ginlimit_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/ginlimittest"
	"github.com/gin-tiers/ratelimit/ginlimit/redisclient"
	"github.com/gin-tiers/ratelimit/tiers"
)

// Staging has keys of its own in a Redis that production uses as well.
func ExampleNewLimiter() {
	rdb, err := redisclient.New("redis://localhost:6379")
	if err != nil {
		log.Fatal(err) // it names the setting and the rule
	}
	defer rdb.Close()
	limiter := ginlimit.NewLimiter(rdb,
		ginlimit.WithKeyPrefix("staging"), ginlimit.WithTimeout(50*time.Millisecond))

	d, err := limiter.Check(context.Background(), "user_8421", 5, time.Minute)
	switch {
	case errors.Is(err, ginlimit.ErrUnavailable):
		log.Print("Redis has not answered for a while, and is not asked")
	case err != nil:
		log.Print(err)
	case !d.Allowed:
		log.Print("rejected for ", d.RetryAfter)
	}
}

// One process, a development machine or a test needs no Redis.
func ExampleNewMemoryLimiter() {
	router := gin.New()
	router.Use(authenticate, ginlimit.New(ginlimit.NewMemoryLimiter(), resolver))
	router.POST("/v1/chat/completions", chat)

	for range 6 {
		w := post(router, "/v1/chat/completions")
		fmt.Println(w.Code, w.Header().Get("X-RateLimit-Remaining"))
	}
	// Output:
	// 200 4
	// 200 3
	// 200 2
	// 200 1
	// 200 0
	// 429 0
}

// A service without Gin asks the limiter itself.
func ExampleNewMemoryLimiter_netHTTP() {
	clock := ginlimittest.NewClock() // for this example
	limiter := ginlimit.NewMemoryLimiter(ginlimit.WithClock(clock.Now))
	limited := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, err := limiter.Check(r.Context(), r.Header.Get("User"), 1, time.Minute)
		switch {
		case errors.Is(err, ginlimit.ErrInvalidUserID):
			http.Error(w, "nobody is signed in", http.StatusUnauthorized)
		case err != nil:
			http.Error(w, "try again shortly", http.StatusServiceUnavailable)
		case !d.Allowed:
			w.Header().Set("Retry-After", fmt.Sprint(d.RetryAfterSeconds()))
			http.Error(w, "rate limit exceeded", http.StatusTooManyRequests)
		}
	})

	for _, user := range []string{"alice", "alice", ""} {
		w := get(limited, "/", "User", user)
		fmt.Printf("%q %d %q\n", user, w.Code, w.Header().Get("Retry-After"))
	}
	// Output:
	// "alice" 200 ""
	// "alice" 429 "60"
	// "" 401 ""
}

// An operator's flag lets all callers pass, at once and in every scope.
func ExampleWithKillSwitch() {
	var off atomic.Bool // or what your feature flags say
	limiter := ginlimit.NewMemoryLimiter(ginlimit.WithKillSwitch(off.Load))
	check := func() {
		d, _ := limiter.Check(context.Background(), "user_8421", 1, time.Minute)
		fmt.Println("disabled:", limiter.Disabled(), "allowed:", d.Allowed)
	}
	check()
	check()
	off.Store(true)
	check()
	// Output:
	// disabled: false allowed: true
	// disabled: false allowed: false
	// disabled: true allowed: true
}

// A caller who hammers is rejected from memory, for up to a second. Retry-After runs down meanwhile.
func ExampleWithRejectionCache() {
	clock := ginlimittest.NewClock()
	limiter := ginlimit.NewMemoryLimiter(ginlimit.WithClock(clock.Now), ginlimit.WithRejectionCache(10_000))
	for range 4 {
		d, _ := limiter.Check(context.Background(), "user_8421", 1, time.Minute)
		fmt.Println(d.Allowed, d.RetryAfter, "cache hits:", limiter.Stats().CacheHits)
		clock.Advance(250 * time.Millisecond)
	}
	// Output:
	// true 0s cache hits: 0
	// false 59.75s cache hits: 0
	// false 59.5s cache hits: 1
	// false 59.25s cache hits: 2
}

// A page shows a user what is left, which takes nothing.
func ExampleLimiter_Usage() {
	table := tiers.Default()
	limiter := ginlimit.NewMemoryLimiter()
	router := gin.New()
	router.Use(authenticate)
	router.POST("/v1/chat/completions", ginlimit.New(limiter, resolver, ginlimit.WithTiers(table)), chat)
	router.GET("/v1/usage", func(c *gin.Context) {
		subject, _ := resolver.ResolveTier(c)
		usage, err := limiter.Usage(c, subject.UserID, limiter.LimitsOf(table, subject))
		if err != nil {
			c.Status(http.StatusServiceUnavailable)
			return
		}
		for _, d := range usage {
			c.String(http.StatusOK, "%s: %d of %d left\n", d.Name(), d.Remaining, d.Limit)
		}
	})

	_ = post(router, "/v1/chat/completions")
	fmt.Print(get(router, "/v1/usage").Body)
	// Output:
	// minute: 4 of 5 left
	// day: 99 of 100 left
}

// An operator sees what is left of a provider's cap, for each tier.
func ExampleLimiter_UpstreamUsage() {
	provider := ginlimit.Upstream{ // the one of WithUpstream
		Name: "openai", PerMinute: 500, Concurrent: 50,
		Share: map[tiers.Tier]float64{tiers.Free: 0.7},
	}
	limiter := ginlimit.NewMemoryLimiter()
	for _, tier := range []tiers.Tier{tiers.Free, tiers.Pro} {
		caps, err := limiter.UpstreamUsage(context.Background(), provider, tier)
		if err != nil {
			log.Fatal(err)
		}
		for _, d := range caps {
			fmt.Printf("%s, %s: %d of %d left\n", tier, d.Name(), d.Remaining, d.Limit)
		}
	}
	// Output:
	// free, minute: 350 of 350 left
	// free, concurrent: 35 of 35 left
	// pro, minute: 500 of 500 left
	// pro, concurrent: 50 of 50 left
}

// A support agent gives a user a fresh minute and day.
func ExampleLimiter_Reset() {
	ctx := context.Background()
	limiter := ginlimit.NewMemoryLimiter()
	for range 3 {
		d, _ := limiter.Check(ctx, "user_8421", 2, time.Minute)
		fmt.Println(d.Allowed)
	}
	if err := limiter.Reset(ctx, "user_8421"); err != nil { // without windows, the minute and the day
		log.Fatal(err)
	}
	d, _ := limiter.Check(ctx, "user_8421", 2, time.Minute)
	fmt.Println(d.Allowed)
	// Output:
	// true
	// true
	// false
	// true
}

// An override counts until its end, and then the tier counts again.
func ExampleLimiter_LimitsOf() {
	table := loadTiers(`
tiers:
  free: {per_minute: 5, per_day: 100}
overrides:
  alice: {per_minute: 50, per_day: 1000, until: 2026-01-01T13:00:00Z}
`)
	clock := ginlimittest.NewClock() // noon of that day
	limiter := ginlimit.NewMemoryLimiter(ginlimit.WithClock(clock.Now))
	alice := ginlimit.Subject{UserID: "alice", Tier: tiers.Free}
	fmt.Println(limiter.LimitsOf(table, alice).PerMinute)
	clock.Advance(time.Hour)
	fmt.Println(limiter.LimitsOf(table, alice).PerMinute)
	// Output:
	// 50
	// 5
}

// A route has a budget of its own instead of the API's.
func ExampleLimiter_Scope() {
	limiter := ginlimit.NewMemoryLimiter()
	router := gin.New()
	router.Use(authenticate)
	router.POST("/v1/chat/completions", ginlimit.New(limiter, resolver), chat)
	router.POST("/v1/images", ginlimit.New(limiter.Scope("images"), resolver,
		ginlimit.WithTiers(loadTiers(`tiers: {free: {per_minute: 1, per_day: 10}}`))), chat)

	for _, path := range []string{"/v1/images", "/v1/images", "/v1/chat/completions"} {
		fmt.Println(path, answer(post(router, path)))
	}
	// Output:
	// /v1/images 200
	// /v1/images 429 rate_limit_exceeded images
	// /v1/chat/completions 200
}
