package ginlimit_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/redisclient"
	"github.com/gin-tiers/ratelimit/ginlimit_test/faulttest"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// A Cluster of three masters and three replicas, as a service that was made by the README uses it.
func TestClusterWithReplicas(t *testing.T) {
	captureLogs(t)
	lag := faulttest.MeasureLag(t)
	cluster := redistest.StartCluster(t, 3, 1)
	connect := func(t *testing.T) redis.UniversalClient {
		t.Helper()
		c, err := redisclient.New(cluster.Addrs()...)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}

	t.Run("exact", func(t *testing.T) { exact(t, connect(t), connect(t)) })

	for mode, opts := range modes {
		t.Run("a slot moves, "+mode, func(t *testing.T) {
			const limit = 300
			id := redistest.ID(t)
			key := "ratelimit:{" + id + "}:60"
			from := cluster.MasterOf(t, key)
			to := cluster.Nodes[0]
			if to == from {
				to = cluster.Nodes[1]
			}
			opts := append(opts[:len(opts):len(opts)], ginlimit.WithTiers(table(t, limit, 2*limit)))
			load := newLoad(t, id,
				serve(t, ginlimit.New(ginlimit.NewLimiter(connect(t)), resolver, opts...)),
				serve(t, ginlimit.New(ginlimit.NewLimiter(connect(t)), resolver, opts...)))
			load.await(func() bool { return load.count(http.StatusOK) > limit/6 })
			cluster.MoveSlot(t, key, to)
			require.Less(t, load.count(http.StatusOK), limit, "there was something left to move for")
			load.await(func() bool { return load.count(http.StatusTooManyRequests) > 100 })
			load.stop()

			require.Equal(t, to, cluster.MasterOf(t, key))
			// A call that ended in 503 may have taken a slot with it.
			require.LessOrEqual(t, load.count(http.StatusOK), limit)
			require.GreaterOrEqual(t, load.count(http.StatusOK), limit-load.count(http.StatusServiceUnavailable))
			entries := to.Client(t).ZRange(t.Context(), key, 0, -1).Val()
			require.Len(t, entries, limit)
		})
	}

	// Last, since it leaves the Cluster without one of its nodes.
	t.Run("a master is killed", func(t *testing.T) {
		const limit = 200
		id := redistest.ID(t)
		key := "ratelimit:{" + id + "}:60"
		master := cluster.MasterOf(t, key)
		load := newLoad(t, id, serve(t, ginlimit.New(ginlimit.NewLimiter(connect(t)), resolver,
			ginlimit.WithTiers(table(t, limit, 2*limit)), ginlimit.WithAtomicWindows())))
		load.await(func() bool { return load.count(http.StatusOK) > limit/4 })
		master.Kill()
		load.await(func() bool { return load.count(http.StatusServiceUnavailable) > 0 })
		promoted := cluster.MasterOf(t, key) // waits for it
		begin := time.Now()
		require.NotEqual(t, master, promoted)
		load.awaitFrom(begin, func(status int) bool { return status != http.StatusServiceUnavailable })
		back := faulttest.Since(begin)
		require.LessOrEqual(t, back.Length(), lag.Allow(5*time.Second, back), "since the promotion")
		load.await(func() bool { return load.count(http.StatusTooManyRequests) > 50 })
		load.stop()
		// What the master had admitted and not yet replicated is admitted again: at most the limit, in fact next to
		// nothing.
		require.LessOrEqual(t, load.count(http.StatusOK), 2*limit)
		t.Logf("back %v after the promotion; %d admitted, limit %d", back.Length(), load.count(http.StatusOK),
			limit)
	})
}

// A master and its replica behind three sentinels, with the settings of redisclient.
func TestSentinel(t *testing.T) {
	captureLogs(t)
	lag := faulttest.MeasureLag(t)
	set := redistest.StartSentinel(t)

	t.Run("exact", func(t *testing.T) { exact(t, sentinelClient(t, set), sentinelClient(t, set)) })

	t.Run("the master is killed", func(t *testing.T) {
		const limit = 200
		id := redistest.ID(t)
		load := newLoad(t, id, serve(t, ginlimit.New(ginlimit.NewLimiter(sentinelClient(t, set)), resolver,
			ginlimit.WithTiers(table(t, limit, 2*limit)), ginlimit.WithAtomicWindows())))
		load.await(func() bool { return load.count(http.StatusOK) > limit/4 })
		set.Master.Kill()
		load.await(func() bool { return load.count(http.StatusServiceUnavailable) > 0 })
		replica := set.Replica.Client(t)
		require.Eventually(t, func() bool {
			return strings.Contains(replica.Info(t.Context(), "replication").Val(), "role:master")
		}, time.Minute, 5*time.Millisecond)
		begin := time.Now()
		load.awaitFrom(begin, func(status int) bool { return status != http.StatusServiceUnavailable })
		back := faulttest.Since(begin)
		require.LessOrEqual(t, back.Length(), lag.Allow(5*time.Second, back), "since the promotion")
		load.await(func() bool { return load.count(http.StatusTooManyRequests) > 50 })
		load.stop()
		require.LessOrEqual(t, load.count(http.StatusOK), 2*limit)
		t.Logf("back %v after the promotion; %d admitted, limit %d", back.Length(), load.count(http.StatusOK),
			limit)
	})
}

// sentinelClient connects to whoever is master, with the settings that redisclient gives to the client of one
// server.
func sentinelClient(t *testing.T, set *redistest.SentinelSet) *redis.Client {
	t.Helper()
	return set.Client(t, limiterClient(t, set.Master.URL()).Options())
}

// exact is what every Redis must show. Two instances make many calls at once. Exactly as many are admitted as
// the user has left, here of the day, and rejected calls have taken nothing, here of the minute.
func exact(t *testing.T, first, second redis.UniversalClient) {
	const users, calls, perMinute, perDay, left = 6, 30, 10, 15, 5
	// A cold connection may take its time on a machine that is busy: this is not about latency.
	patient := ginlimit.NewLimiter(first, ginlimit.WithTimeout(time.Second))
	used := func(t *testing.T, id string, window time.Duration) int {
		t.Helper()
		d, err := patient.Peek(t.Context(), id, 1000, window)
		require.NoError(t, err)
		return 1000 - d.Remaining
	}
	for mode, opts := range modes {
		t.Run(mode, func(t *testing.T) {
			opts := append(opts[:len(opts):len(opts)], ginlimit.WithTiers(table(t, perMinute, perDay)))
			apis := []*api{
				serve(t, ginlimit.New(patient, resolver, opts...)),
				serve(t, ginlimit.New(ginlimit.NewLimiter(second, ginlimit.WithTimeout(time.Second)), resolver, opts...)),
			}
			ids := make([]string, users)
			for i := range ids {
				ids[i] = redistest.ID(t)
				for range perDay - left {
					_, err := patient.Check(t.Context(), ids[i], perDay, 24*time.Hour)
					require.NoError(t, err)
				}
			}
			var statuses tally
			var wg sync.WaitGroup
			for call := range calls {
				wg.Go(func() {
					for i, id := range ids {
						statuses.add(id, apis[(call+i)%2].as(id).StatusCode)
					}
				})
			}
			wg.Wait()
			for _, id := range ids {
				// on a machine that is busy; each may have cost a slot
				failed := statuses.count(id, http.StatusServiceUnavailable)
				admitted := statuses.count(id, http.StatusOK)
				require.LessOrEqual(t, admitted, left)
				require.GreaterOrEqual(t, admitted, left-failed)
				require.Equal(t, calls-admitted-failed, statuses.count(id, http.StatusTooManyRequests))
				require.InDelta(t, perDay, used(t, id, 24*time.Hour), float64(failed))
				require.InDelta(t, left, used(t, id, time.Minute), float64(failed))

				require.NoError(t, patient.Reset(t.Context(), id))
				require.Zero(t, used(t, id, time.Minute)+used(t, id, 24*time.Hour))
			}
		})
	}
}
