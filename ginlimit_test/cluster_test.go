package ginlimit_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/tiers"
)

// organisationOf is the front of an id such as "acme/alice".
func organisationOf(id string) string {
	organisation, _, _ := strings.Cut(id, "/")
	return organisation
}

// On a real Cluster, whose server refuses keys of two slots in one script.
func TestCluster(t *testing.T) {
	cluster := redistest.StartCluster(t, 3, 0)
	rdb := cluster.Client(t)
	l := ginlimit.NewLimiter(rdb)

	t.Run("one decision over scopes and windows", func(t *testing.T) {
		api := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 3, 100)),
			ginlimit.WithScope("images", table(t, 2, 100))))
		owners := map[string]bool{}
		for i := range 20 {
			user := fmt.Sprintf("user:{%d}", i) // an id cannot choose the slot
			require.Equal(t, "2 1 minute", api.as(user).limits(t))
			require.Equal(t, "2 0 minute", api.as(user).limits(t))
			require.Equal(t, http.StatusTooManyRequests, api.as(user).StatusCode)
			key := fmt.Sprintf("ratelimit:{user%%3A%%7B%d%%7D}:60", i)
			require.EqualValues(t, 2, rdb.ZCard(t.Context(), key).Val(), key)
			require.EqualValues(t, 2, rdb.ZCard(t.Context(), strings.Replace(key, ":60", ":images:86400", 1)).Val())
			owners[cluster.MasterOf(t, key).Addr] = true
		}
		require.Len(t, owners, 3, "users spread over all masters")
	})

	t.Run("stacked limiters of different users", func(t *testing.T) {
		api := serve(t,
			ginlimit.New(l.Scope("ip"), ginlimit.ByClientIP(tiers.Free), ginlimit.WithTiers(table(t, 9, 9)),
				ginlimit.WithAtomicWindows()),
			ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 1, 9)), ginlimit.WithAtomicWindows()))
		id := redistest.ID(t)
		require.Equal(t, "1 0 minute", api.as(id).limits(t))
		require.Equal(t, http.StatusTooManyRequests, api.as(id).StatusCode)
		require.EqualValues(t, 1, rdb.ZCard(t.Context(), "ratelimit:{ip/127.0.0.1}:ip:60").Val(),
			"given back in another slot")
	})

	t.Run("two clients at once", func(t *testing.T) {
		second := ginlimit.NewLimiter(cluster.Client(t))
		opts := []ginlimit.Option{ginlimit.WithTiers(table(t, 10, 10)), ginlimit.WithAtomicWindows()}
		apis := []*api{serve(t, ginlimit.New(l, resolver, opts...)),
			serve(t, ginlimit.New(second, resolver, opts...))}
		id := redistest.ID(t)
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() { apis[i%2].as(id) })
		}
		wg.Wait()
		require.EqualValues(t, 10, apis[0].Handled.Load()+apis[1].Handled.Load())
	})

	t.Run("a wrapper that hides the Cluster", func(t *testing.T) {
		type wrapper struct{ redis.Scripter }
		id := redistest.ID(t)
		hidden := serve(t, ginlimit.New(ginlimit.NewLimiter(wrapper{rdb}, ginlimit.WithHashTags()), resolver,
			ginlimit.WithAtomicWindows()))
		require.Equal(t, "5 4 minute", hidden.as(id).limits(t))
		require.EqualValues(t, 1, rdb.ZCard(t.Context(), "ratelimit:{"+id+"}:60").Val())

		captureLogs(t)
		bare := serve(t, ginlimit.New(ginlimit.NewLimiter(wrapper{rdb}), resolver, ginlimit.WithAtomicWindows()))
		require.Equal(t, http.StatusServiceUnavailable, bare.as(id).StatusCode, "CROSSSLOT is an error, not a pass")
	})

	// The organisation is the hash tag of its users: one call, all or none.
	t.Run("users beside their organisation", func(t *testing.T) {
		l := ginlimit.NewLimiter(rdb, ginlimit.WithHashTagOf(organisationOf))
		orgs := ginlimit.TierResolverFunc(func(c *gin.Context) (ginlimit.Subject, error) {
			return ginlimit.Subject{UserID: organisationOf(c.GetHeader(headerUser))}, nil
		})
		api := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 6, 100)),
			ginlimit.WithScopeFor("org", table(t, 10, 100), orgs)))
		id := redistest.ID(t)
		master := cluster.MasterOf(t, "{"+id+"}")
		scripts := func() int { return master.Calls(t, "evalsha") + master.Calls(t, "eval") }
		api.as(id + "/warm-up") // loads the script
		before := scripts()
		require.Equal(t, "6 5 minute", api.as(id+"/alice").limits(t))
		require.Equal(t, before+1, scripts())

		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() { api.as(id + "/" + []string{"alice", "bob"}[i%2]) })
		}
		wg.Wait()
		require.EqualValues(t, 10, api.Handled.Load(), "the organisation's")
		require.EqualValues(t, 10, rdb.ZCard(t.Context(), "ratelimit:{"+id+"}:org:60").Val())
		before, added := scripts(), master.Calls(t, "zadd")
		r := api.as(id + "/carol")
		require.Equal(t, http.StatusTooManyRequests, r.StatusCode)
		require.Contains(t, r.body, `"scope":"org"`)
		require.Equal(t, before+1, scripts())
		require.Equal(t, added, master.Calls(t, "zadd"), "not even for a moment")

		require.Equal(t, 1, used(t, l, id+"/warm-up", tiers.Limits{PerMinute: 6})["1m0s"])
		require.NoError(t, l.Reset(t.Context(), id+"/warm-up"))
		require.Zero(t, rdb.Exists(t.Context(), "ratelimit:{"+id+"}"+id+"/warm-up:60").Val())
	})

	t.Run("reset", func(t *testing.T) {
		id := redistest.ID(t)
		_, err := l.Check(t.Context(), id, 1, time.Minute)
		require.NoError(t, err)
		require.NoError(t, l.Reset(t.Context(), id))
		d, err := l.Check(t.Context(), id, 1, time.Minute)
		require.NoError(t, err)
		require.True(t, d.Allowed)
	})
}
