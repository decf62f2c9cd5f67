package migration_test

import (
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	ulule "github.com/ulule/limiter/v3"
	mgin "github.com/ulule/limiter/v3/drivers/middleware/gin"
	sredis "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/tiers"
)

func limitWithUlule(router *gin.Engine, rdb *redis.Client) error {
	user := func(c *gin.Context) string { return c.GetString("user_id") }
	for _, format := range []string{"5-M", "100-D"} {
		rate, err := ulule.NewRateFromFormatted(format)
		if err != nil {
			return err
		}
		store, err := sredis.NewStoreWithOptions(rdb, ulule.StoreOptions{Prefix: "limiter:" + format})
		if err != nil {
			return err
		}
		router.Use(mgin.NewMiddleware(ulule.New(store, rate), mgin.WithKeyGetter(user)))
	}
	return nil
}

func limitAfterUlule(router *gin.Engine, rdb *redis.Client) error {
	table, err := tiers.NewStore(tiers.Free, map[tiers.Tier]tiers.Limits{
		tiers.Free: {PerMinute: 5, PerDay: 100},
		tiers.Pro:  {PerMinute: 60, PerDay: 5000},
	})
	if err != nil {
		return err
	}
	resolver := ginlimit.FromContext("user_id", "tier")
	router.Use(ginlimit.New(ginlimit.NewLimiter(rdb), resolver,
		ginlimit.WithTiers(table), ginlimit.WithAtomicWindows()))
	return nil
}

func TestFromUlule(t *testing.T) {
	before := limited(t, limitWithUlule)
	require.Equal(t, "429 Limit exceeded", before.answer)
	require.Equal(t, []string{"Limit: 5", "Remaining: 0", "Reset: a Unix time"}, before.headers)
	require.Equal(t, []string{"limiter:100-D:alice", "limiter:5-M:alice"}, before.keys)

	after := limited(t, limitAfterUlule)
	require.Equal(t, "429 JSON", after.answer)
	require.Equal(t, []string{"Limit: 5", "Remaining: 0", "Retry-After: 60", "Window: minute"}, after.headers)
	require.Equal(t, []string{"ratelimit:alice:60", "ratelimit:alice:86400"}, after.keys)
}
