package ginlimit_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/redisclient"
	"github.com/gin-tiers/ratelimit/tiers"
)

// A router of one's own: authenticate first, then limit the whole API, with a further budget for
// the images.
func ExampleNew() {
	rdb, err := redisclient.New("redis://localhost:6379")
	if err != nil {
		log.Fatal(err)
	}
	router := gin.New()
	_ = router.SetTrustedProxies(nil) // or the addresses of your proxies
	router.Use(authenticate)          // does c.Set("user_id", …) and c.Set("tier", …)

	limiter := ginlimit.NewLimiter(rdb)
	resolver := ginlimit.FromContext("user_id", "tier")
	v1 := router.Group("/v1", ginlimit.New(limiter, resolver, ginlimit.WithAtomicWindows()))
	v1.POST("/chat/completions", chat)
}

// A request may have to meet several budgets: here the whole API's and the images'. They are
// decided together, all or none.
func ExampleWithScope() {
	imageTiers, err := tiers.NewStore(tiers.Free, map[tiers.Tier]tiers.Limits{
		tiers.Free: {PerMinute: 1, PerDay: 10},
		tiers.Pro:  {PerMinute: 10, PerDay: 500},
	})
	if err != nil {
		panic(err)
	}
	limiter := ginlimit.NewMemoryLimiter()
	resolver := ginlimit.FromContext("user_id", "tier")

	router := gin.New()
	router.Use(authenticate)
	router.POST("/v1/chat/completions", ginlimit.New(limiter, resolver, ginlimit.WithAtomicWindows()), chat)
	router.POST("/v1/images", ginlimit.New(limiter, resolver, ginlimit.WithScope("images", imageTiers)), chat)

	for range 2 {
		w := httptest.NewRecorder()
		router.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/images", nil))
		h := w.Header()
		fmt.Println(w.Code, h.Get("X-RateLimit-Limit"), h.Get("X-RateLimit-Remaining"), h.Get("X-RateLimit-Window"))
	}
	// Output:
	// 200 1 0 minute
	// 429 1 0 minute
}

// The primitive, without Gin: one window of one user.
func ExampleLimiter_Check() {
	limiter := ginlimit.NewMemoryLimiter()
	for range 3 {
		d, err := limiter.Check(context.Background(), "user_8421", 2, time.Minute)
		if err != nil {
			panic(err) // Redis could not decide; a memory limiter always can
		}
		fmt.Println(d.Allowed, d.Remaining, d.RetryAfterSeconds())
	}
	// Output:
	// true 1 0
	// true 0 0
	// false 0 60
}

// A clock that a test moves makes it exact and quick.
func ExampleWithClock() {
	now := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	limiter := ginlimit.NewMemoryLimiter(ginlimit.WithClock(func() time.Time { return now }))
	check := func() {
		d, _ := limiter.Check(context.Background(), "user_8421", 1, time.Minute)
		fmt.Println(d.Allowed, d.RetryAfter)
	}
	check()
	now = now.Add(48 * time.Second)
	check()
	now = now.Add(12 * time.Second)
	check()
	// Output:
	// true 0s
	// false 12s
	// true 0s
}

// Anonymous callers get a budget by address: one for each IPv4 address or IPv6 /64.
func ExampleByClientIP() {
	router := gin.New()
	_ = router.SetTrustedProxies([]string{"10.0.0.0/8"}) // without it forwarded addresses are not believed
	limiter := ginlimit.NewMemoryLimiter().Scope("anonymous")
	router.Use(ginlimit.New(limiter, ginlimit.ByClientIP(tiers.Free)))
	router.GET("/v1/models", chat)

	r := httptest.NewRequest(http.MethodGet, "/v1/models", nil)
	r.RemoteAddr = "203.0.113.7:52814"
	w := httptest.NewRecorder()
	router.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Header().Get("X-RateLimit-Remaining"))
	// Output: 200 4
}

// Users who are signed in keep their budgets wherever they are; everybody else has one by address. A user who
// is named like an address does not meet the callers from there.
func ExampleFirstOf() {
	resolver := ginlimit.FirstOf(ginlimit.FromContext("user_id", "tier"), ginlimit.ByClientIP(tiers.Free))

	router := gin.New()
	_ = router.SetTrustedProxies(nil) // or the addresses of your proxies
	router.Use(func(c *gin.Context) { // the auth middleware
		if c.GetHeader("Authorization") != "" {
			authenticate(c)
		}
	})
	router.Use(ginlimit.New(ginlimit.NewMemoryLimiter(), resolver))
	router.GET("/v1/models", chat)

	for _, authorization := range []string{"", "", "Bearer sk-free-demo"} {
		r := httptest.NewRequest(http.MethodGet, "/v1/models", nil)
		r.RemoteAddr = "203.0.113.7:52814"
		r.Header.Set("Authorization", authorization)
		w := httptest.NewRecorder()
		router.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("X-RateLimit-Remaining"))
	}
	// Output:
	// 200 4
	// 200 3
	// 200 4
}

// From a tier file to a limited route.
func ExampleWithTiers() {
	path := tierFile(`
fallback: free
tiers:
  free: {per_minute: 2, per_day: 100}
  pro:  {per_minute: 60, per_day: 5000}
`)
	defer os.Remove(path)

	table, err := tiers.LoadFile(path)
	if err != nil {
		panic(err) // it names tier, field, value and rule
	}
	limiter := ginlimit.NewMemoryLimiter() // or NewLimiter with a Redis client
	resolver := ginlimit.FromContext("user_id", "tier")
	router := gin.New()
	router.Use(authenticate)
	router.POST("/v1/chat/completions", ginlimit.New(limiter, resolver, ginlimit.WithTiers(table)), chat)

	for range 3 {
		w := httptest.NewRecorder()
		router.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", nil))
		fmt.Println(w.Code, w.Header().Get("X-RateLimit-Limit"), w.Header().Get("X-RateLimit-Remaining"))
	}
	// Output:
	// 200 2 1
	// 200 2 0
	// 429 2 0
}

// A service that knows its callers by their API keys alone keeps the keys out of Redis.
func ExampleHashedID() {
	resolver := ginlimit.TierResolverFunc(func(c *gin.Context) (ginlimit.Subject, error) {
		key := c.GetHeader("X-Api-Key")
		if key == "" {
			return ginlimit.Subject{}, ginlimit.ErrNoSubject // answered with 401
		}
		return ginlimit.Subject{UserID: ginlimit.HashedID(key), Tier: tiers.Pro}, nil
	})
	_ = ginlimit.New(ginlimit.NewMemoryLimiter(), resolver)
	fmt.Println(ginlimit.HashedID("sk-secret")[:12])
	// Output: 746b4ad1ca91
}

// An Observer counts what happens; outcome, route and tier make safe metric labels.
func ExampleWithObserver() {
	counts := map[string]int{}
	observer := ginlimit.ObserverFunc(func(_ context.Context, e ginlimit.Event) {
		counts[fmt.Sprint(e.Tier, " ", e.Outcome)]++ // a real one is safe for concurrent use
	})
	resolver := ginlimit.FromContext("user_id", "tier")
	router := gin.New()
	router.Use(authenticate)
	router.Use(ginlimit.New(ginlimit.NewMemoryLimiter(), resolver, ginlimit.WithObserver(observer)))
	router.GET("/", chat)
	for range 6 {
		router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	}
	fmt.Println(counts)
	// Output: map[free admitted:5 free rejected:1]
}

// tierFile stands for the file that an operator has written.
func tierFile(text string) (path string) {
	f, err := os.CreateTemp("", "tiers-*.yaml")
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		panic(err)
	}
	return f.Name()
}

func authenticate(c *gin.Context) {
	c.Set("user_id", "user_8421")
	c.Set("tier", tiers.Free)
}

func chat(c *gin.Context) { c.Status(http.StatusOK) }
