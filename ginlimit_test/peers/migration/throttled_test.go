package migration_test

import (
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"github.com/throttled/throttled/v2"
	goredisstore "github.com/throttled/throttled/v2/store/goredisstore.v9"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/tiers"
)

func limitWithThrottled(router http.Handler, rdb *redis.Client) (http.Handler, error) {
	store, err := goredisstore.NewCtx(rdb, "throttled:")
	if err != nil {
		return nil, err
	}
	quota := throttled.RateQuota{MaxRate: throttled.PerMin(5), MaxBurst: 4}
	limiter, err := throttled.NewGCRARateLimiterCtx(store, quota)
	if err != nil {
		return nil, err
	}
	limited := throttled.HTTPRateLimiterCtx{
		RateLimiter: limiter,
		VaryBy:      &throttled.VaryBy{Headers: []string{"X-Api-Key"}},
	}
	return limited.RateLimit(router), nil
}

func limitAfterThrottled(router *gin.Engine, rdb *redis.Client) error {
	table, err := tiers.NewStore(tiers.Free, map[tiers.Tier]tiers.Limits{
		tiers.Free: {PerMinute: 5, PerDay: tiers.Unlimited},
	})
	if err != nil {
		return err
	}
	resolver := ginlimit.TierResolverFunc(func(c *gin.Context) (ginlimit.Subject, error) {
		key := c.GetHeader("X-Api-Key")
		if key == "" {
			return ginlimit.Subject{}, ginlimit.ErrNoSubject // answered with 401
		}
		return ginlimit.Subject{UserID: ginlimit.HashedID(key), Tier: tiers.Free}, nil
	})
	router.Use(ginlimit.New(ginlimit.NewLimiter(rdb), resolver, ginlimit.WithTiers(table)))
	return nil
}

func TestFromThrottled(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	router := newRouter()
	serveRoot(router)
	handler, err := limitWithThrottled(router, rdb)
	require.NoError(t, err)
	before := sixth(t, handler, rdb)
	require.Equal(t, "429 limit exceeded", before.answer)
	require.Equal(t, []string{"Limit: 5", "Remaining: 0", "Reset: 60", "Retry-After: 12"}, before.headers)
	require.Equal(t, []string{"throttled:sk-alice\n"}, before.keys)

	after := limited(t, limitAfterThrottled)
	require.Equal(t, "429 JSON", after.answer)
	require.Equal(t, []string{"Limit: 5", "Remaining: 0", "Retry-After: 60", "Window: minute"}, after.headers)
	require.Equal(t, []string{"ratelimit:" + ginlimit.HashedID("sk-alice") + ":60"}, after.keys)
}
