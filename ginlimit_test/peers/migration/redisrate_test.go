package migration_test

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/tiers"
)

func limitWithRedisRate(router *gin.Engine, rdb *redis.Client) error {
	limiter := redis_rate.NewLimiter(rdb)
	router.Use(func(c *gin.Context) {
		result, err := limiter.Allow(c.Request.Context(), c.GetString("user_id"), redis_rate.PerMinute(5))
		if err != nil {
			c.AbortWithStatus(http.StatusServiceUnavailable)
			return
		}
		c.Header("X-RateLimit-Remaining", strconv.Itoa(result.Remaining))
		if result.Allowed == 0 {
			c.Header("Retry-After", strconv.Itoa(int(math.Ceil(result.RetryAfter.Seconds()))))
			c.AbortWithStatus(http.StatusTooManyRequests)
		}
	})
	return nil
}

func limitAfterRedisRate(router *gin.Engine, rdb *redis.Client) error {
	table, err := tiers.NewStore(tiers.Free, map[tiers.Tier]tiers.Limits{
		tiers.Free: {PerMinute: 5, PerDay: tiers.Unlimited},
	})
	if err != nil {
		return err
	}
	resolver := ginlimit.FromContext("user_id", "tier")
	router.Use(ginlimit.New(ginlimit.NewLimiter(rdb), resolver, ginlimit.WithTiers(table)))
	return nil
}

// waitOf is how long a user has to wait now, 0 if the request is allowed.
func waitOf(ctx context.Context, rdb *redis.Client, userID string) (time.Duration, error) {
	decision, err := ginlimit.NewLimiter(rdb).Check(ctx, userID, 5, time.Minute)
	return decision.RetryAfter, err
}

func TestFromRedisRate(t *testing.T) {
	before := limited(t, limitWithRedisRate)
	require.Equal(t, "429 nothing", before.answer)
	require.Equal(t, []string{"Remaining: 0", "Retry-After: 12"}, before.headers)
	require.Equal(t, []string{"rate:alice"}, before.keys)

	after := limited(t, limitAfterRedisRate)
	require.Equal(t, "429 JSON", after.answer)
	require.Equal(t, []string{"Limit: 5", "Remaining: 0", "Retry-After: 60", "Window: minute"}, after.headers)
	require.Equal(t, []string{"ratelimit:alice:60"}, after.keys)
}

func TestFromRedisRateWithoutGin(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	for range 5 {
		wait, err := waitOf(t.Context(), rdb, "alice")
		require.NoError(t, err)
		require.Zero(t, wait)
	}
	wait, err := waitOf(t.Context(), rdb, "alice")
	require.NoError(t, err)
	require.Positive(t, wait)
	require.LessOrEqual(t, wait, time.Minute)
}
