package ginlimit_test

import (
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/redisclient"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/tiers"
)

// Stats follows the kill switch, the breaker and the leases, and asks Redis nothing.
func TestStats(t *testing.T) {
	captureLogs(t)
	srv := redistest.Start(t)
	rdb, err := redisclient.New(srv.URL())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	l := ginlimit.NewLimiter(rdb)
	images := l.Scope("images")
	table, _ := plenty(t, func(l *tiers.Limits) { l.Concurrent = 9 })
	api := serve(t, ginlimit.New(images, resolver, ginlimit.WithTiers(table), ginlimit.WithConcurrency()),
		func(*gin.Context) { require.Equal(t, 1, l.Stats().Leases) })

	s := l.Stats()
	require.NotEmpty(t, s.Groups)
	s.Groups = nil
	require.Equal(t, ginlimit.Stats{Breakers: 1}, s)
	api.as("alice")
	l.SetDisabled(true)
	require.True(t, images.Stats().Disabled)
	l.SetDisabled(false)

	srv.Kill()
	for range 6 {
		_, err := l.Check(t.Context(), "alice", 1, time.Minute)
		require.Error(t, err)
	}
	require.Equal(t, 1, l.Stats().BreakersOpen)
	require.Zero(t, l.Stats().Leases)
	require.Equal(t, ginlimit.Stats{}, ginlimit.NewMemoryLimiter().Stats())
}
