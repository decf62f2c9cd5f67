package admin_test

import (
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/admin"
	"github.com/gin-tiers/ratelimit/ginlimit/ginlimittest"
	"github.com/gin-tiers/ratelimit/tiers"
)

// Usage shows the numbers by which the middleware decides, and both go by the limiter's clock.
func TestUsageOfListedUsers(t *testing.T) {
	limits := ginlimittest.New(t)
	table, err := tiers.Default().WithUsers(tiers.Users{
		Overrides: map[string]tiers.Override{
			"alice": {Limits: tiers.Limits{PerMinute: 7, PerDay: 70}, Until: limits.Clock.Now().Add(time.Hour)},
		},
		Allow: []string{"probe"}, Deny: []string{"mallory"},
	})
	require.NoError(t, err)
	free := ginlimit.TierResolverFunc(func(c *gin.Context) (ginlimit.Subject, error) {
		return ginlimit.Subject{UserID: c.Query("as"), Tier: "free"}, nil
	})
	gin.SetMode(gin.TestMode)
	router := gin.New()
	router.GET("/chat", ginlimit.New(limits.Limiter, free, ginlimit.WithTiers(table)))
	admin.Routes(router.Group("/admin"), limits.Limiter, admin.WithTiers(table))
	s := site{router, limits.Limiter}
	shown := func(user string) string {
		return s.send(t, "GET /admin/usage?tier=free&user="+user, "").Body.String()
	}
	told := func() string { return s.send(t, "GET /chat?as=alice", "").Header().Get(ginlimit.HeaderLimit) }

	require.Equal(t, "7", told())
	require.Contains(t, shown("alice"), `"window":"minute","limit":7,"used":1,"remaining":6`)
	require.Contains(t, shown("bob"), `"window":"minute","limit":5,"used":0`)
	require.Contains(t, shown("probe"), `"budgets":[]`)
	require.Contains(t, shown("mallory"), `"window":"minute","limit":5,"used":0`)

	limits.Clock.Advance(time.Hour - time.Millisecond)
	require.Equal(t, "7", told())
	require.Contains(t, shown("alice"), `"window":"minute","limit":7,"used":1`)
	limits.Clock.Advance(time.Millisecond)
	require.Contains(t, shown("alice"), `"window":"minute","limit":5,"used":1`)
	require.Equal(t, "5", told())
}
