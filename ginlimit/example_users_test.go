package ginlimit_test

import (
	"errors"
	"fmt"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/tiers"
)

// A service looks up the tier itself. What the resolver returns decides the answer.
func ExampleTierResolverFunc() {
	errDatabase := errors.New("the database is down")
	tierOf := func(userID string) (tiers.Tier, error) { // your look-up
		if userID == "bob" {
			return "", errDatabase
		}
		return tiers.Pro, nil
	}
	resolver := ginlimit.TierResolverFunc(func(c *gin.Context) (ginlimit.Subject, error) {
		userID := c.GetHeader("User")
		if userID == "" {
			return ginlimit.Subject{}, ginlimit.ErrNoSubject // it is answered with 401
		}
		tier, err := tierOf(userID)
		return ginlimit.Subject{UserID: userID, Tier: tier}, err // an error is answered with 503
	})
	router := gin.New()
	router.POST("/v1/chat/completions", ginlimit.New(ginlimit.NewMemoryLimiter(), resolver), chat)

	for _, user := range []string{"alice", "bob", ""} {
		fmt.Println(answer(post(router, "/v1/chat/completions", "User", user)))
	}
	// Output:
	// 200
	// 503 tier_lookup_failed
	// 401 unauthenticated
}

// The claims of a token may say who calls. A number of a JSON document is an id like a string.
func ExampleFromContext() {
	claims := map[string]any{"sub": float64(8421), "plan": "pro"} // as encoding/json decodes them
	router := gin.New()
	router.Use(func(c *gin.Context) { // the auth middleware
		c.Set("user_id", claims["sub"])
		c.Set("tier", claims["plan"])
	})
	limiter := ginlimit.NewMemoryLimiter()
	router.Use(ginlimit.New(limiter, ginlimit.FromContext("user_id", "tier")))
	router.POST("/v1/chat/completions", chat)

	fmt.Println(post(router, "/v1/chat/completions").Header().Get("X-RateLimit-Limit"))
	// Output: 60
}

// A tier file may name single users: more for one until a moment, everything for one, nothing for one.
func ExampleWithTiers_users() {
	table := loadTiers(`
tiers:
  free: {per_minute: 5, per_day: 100}
overrides:
  alice: {per_minute: 50, per_day: 1000, until: 2126-01-01T00:00:00Z}
allow: [monitoring] # meets no budget
deny:  [mallory]
`)
	limited := ginlimit.New(ginlimit.NewMemoryLimiter(), resolver, ginlimit.WithTiers(table))
	router := gin.New()
	router.POST("/v1/chat/completions", signIn, limited, chat)

	for _, user := range []string{"alice", "bob", "monitoring", "mallory"} {
		w := post(router, "/v1/chat/completions", "User", user)
		fmt.Printf("%s: %s, limit %q\n", user, answer(w), w.Header().Get("X-RateLimit-Limit"))
	}
	// Output:
	// alice: 200, limit "50"
	// bob: 200, limit "5"
	// monitoring: 200, limit ""
	// mallory: 403 user_denied, limit ""
}
