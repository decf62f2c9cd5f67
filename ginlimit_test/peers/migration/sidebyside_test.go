package migration_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/headers"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/tiers"
)

// watchBesideTheOld is to be mounted in front of the old limiter.
func watchBesideTheOld(router *gin.Engine, rdb *redis.Client, table *tiers.Store, o ginlimit.Observer) {
	oldRejected := func(c *gin.Context) bool { return c.Writer.Status() == http.StatusTooManyRequests }
	router.Use(ginlimit.New(ginlimit.NewLimiter(rdb), ginlimit.FromContext("user_id", "tier"),
		ginlimit.WithTiers(table), ginlimit.WithAtomicWindows(),
		ginlimit.WithShadow(),              // rejects nothing; the log and the observer tell what it would
		ginlimit.WithObserver(o),           // such as a collector of ginlimit/prom
		ginlimit.WithHeaders(headers.None), // the old limiter's headers stay as they are
		ginlimit.WithRefundOn(oldRejected), // what the old limiter rejects costs nothing here
	))
}

// The new limiter tells its observer what it would reject. The old one answers as before, and what that
// rejects is not counted by the new one.
func TestSideBySide(t *testing.T) {
	mounted := func(perMinute int) (_ http.Handler, _ *redis.Client, seen *[]ginlimit.Outcome) {
		table, err := tiers.NewStore(tiers.Free, map[tiers.Tier]tiers.Limits{
			tiers.Free: {PerMinute: perMinute, PerDay: 100},
		})
		require.NoError(t, err)
		seen = new([]ginlimit.Outcome)
		observer := ginlimit.ObserverFunc(func(_ context.Context, e ginlimit.Event) {
			*seen = append(*seen, e.Outcome)
		})
		rdb, router := redistest.Start(t).Client(t), newRouter()
		watchBesideTheOld(router, rdb, table, observer)
		require.NoError(t, limitWithUlule(router, rdb))
		serveRoot(router)
		return router, rdb, seen
	}
	stricter, _, seen := mounted(3)
	for i := range 6 {
		w := send(stricter)
		require.Equal(t, i == 5, w.Code == http.StatusTooManyRequests)
		require.Equal(t, i >= 3, (*seen)[i] == ginlimit.ShadowRejected)
		require.NotEmpty(t, w.Header().Get("X-RateLimit-Reset"), "the old limiter's")
		require.Empty(t, w.Header().Get("X-RateLimit-Window"))
	}
	wider, rdb, seen := mounted(7)
	for i := range 9 {
		require.Equal(t, i >= 5, send(wider).Code == http.StatusTooManyRequests)
		require.Equal(t, ginlimit.Admitted, (*seen)[i])
	}
	require.EqualValues(t, 5, rdb.ZCard(t.Context(), "ratelimit:alice:60").Val())
}
