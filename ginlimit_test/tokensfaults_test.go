package ginlimit_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/tiers"
)

// metered is a service with budgets of 1,000 tokens a minute and a day, and 3 requests at once, for the user
// id. A request reserves 100 tokens and settles 30; something may happen meanwhile.
type metered struct {
	*api
	t         *testing.T
	limiter   *ginlimit.Limiter
	limits    tiers.Limits
	id        string
	meanwhile func()
	done      chan bool
}

func newMetered(t *testing.T, l *ginlimit.Limiter, opts ...ginlimit.Option) *metered {
	t.Helper()
	table, limits := plenty(
		t,
		func(l *tiers.Limits) { l.TokensPerMinute, l.TokensPerDay, l.Concurrent = 1000, 1000, 3 },
	)
	m := &metered{t: t, limiter: l, limits: limits, id: redistest.ID(t), done: make(chan bool, 100)}
	mount := ginlimit.New(l, resolver, append(opts, ginlimit.WithTiers(table), ginlimit.WithUsage(headerUsage),
		ginlimit.WithConcurrency())...)
	last := func(c *gin.Context) {
		c.Next()
		m.done <- true
	}
	m.api = serve(t, last, mount, func(c *gin.Context) {
		ginlimit.AdmissionFrom(c).Settle(ginlimit.Usage{Tokens: 30})
		if m.meanwhile != nil && c.GetHeader("Aside") == "" {
			m.meanwhile()
		}
	})
	return m
}

// send returns the status of a request that has ended.
func (m *metered) send(headers ...string) int {
	m.t.Helper()
	r := m.as(m.id, append(headers, "Tokens", "100")...)
	<-m.done
	return r.StatusCode
}

// found are the tokens of the minute and the day that are used, and the requests in progress.
func (m *metered) found() [3]int {
	m.t.Helper()
	u := used(m.t, m.limiter, m.id, m.limits)
	return [3]int{u["tokens1m0s"], u["tokens24h0m0s"], u["concurrent"]}
}

// A lost reply, of the admission and of the end, changes nothing. B6.
func TestLostRepliesOfTokens(t *testing.T) {
	srv := redistest.Start(t)
	proxy := redistest.NewProxy(t, srv.Addr)
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr}) // repeats itself three times
	t.Cleanup(func() { _ = rdb.Close() })
	m := newMetered(t, ginlimit.NewLimiter(rdb))
	require.Equal(t, http.StatusOK, m.send())
	for lost := 1; lost <= 3; lost++ {
		proxy.DropReplies(lost) // of the admission
		m.meanwhile = func() { require.Equal(t, [3]int{30*(2*lost-1) + 100, 30*(2*lost-1) + 100, 1}, m.found()) }
		require.Equal(t, http.StatusOK, m.send())
		m.meanwhile = func() { proxy.DropReplies(lost) } // of the end
		require.Equal(t, http.StatusOK, m.send())
		require.Equal(t, [3]int{30 * (2*lost + 1), 30 * (2*lost + 1), 0}, m.found())
	}
	require.Equal(t, 12, proxy.Dropped())
}

// The keys of a user are in one slot of a Cluster, and on one shard of a Ring.
func TestTokensOnSeveralServers(t *testing.T) {
	cluster := redistest.StartCluster(t, 3, 0)
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{
		"a": redistest.Start(t).Addr, "b": redistest.Start(t).Addr}})
	t.Cleanup(func() { _ = ring.Close() })
	for name, rdb := range map[string]redis.Scripter{"cluster": cluster.Client(t), "ring": ring} {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				m := newMetered(t, ginlimit.NewLimiter(rdb))
				m.meanwhile = func() { require.Equal(t, [3]int{100, 100, 1}, m.found()) }
				require.Equal(t, http.StatusOK, m.send())
				require.Equal(t, [3]int{30, 30, 0}, m.found())
			}
		})
	}
	t.Run("a slot that moves meanwhile", func(t *testing.T) {
		m := newMetered(t, ginlimit.NewLimiter(cluster.Client(t)))
		key := "{" + m.id + "}"
		m.meanwhile = func() {
			to := cluster.Nodes[0]
			if to == cluster.MasterOf(t, key) {
				to = cluster.Nodes[1]
			}
			cluster.MoveSlot(t, key, to)
		}
		for i := 1; i <= 3; i++ {
			require.Equal(t, http.StatusOK, m.send())
			require.Equal(t, [3]int{30 * i, 30 * i, 0}, m.found())
		}
	})
}

// While a Cluster has a user's slot half moved, scripts over all keys are refused: requests end by the
// failure policy, and nothing of them is taken.
func TestTokensWhileASlotIsHalfMoved(t *testing.T) {
	captureLogs(t)
	s := startShards(t)
	m := newMetered(t, ginlimit.NewLimiter(clusterClient(t, s.Cluster), ginlimit.WithTimeout(time.Second)))
	require.Equal(t, http.StatusOK, m.send())
	s.halfMove(t, m.id, "60:tokens")
	require.Equal(t, http.StatusServiceUnavailable, m.send())
	require.EqualValues(t, 1, m.Handled.Load())
	require.Equal(t, [3]int{30, 30, 0}, m.found())
}

// A Redis that is killed in the middle of a request: with persistence all is settled; without it, counts
// start anew, and what the request reserved is not given back to those after it.
func TestRedisKilledBetweenAdmissionAndEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		want [3]int
	}{
		"with persistence":    {[]string{"--appendonly", "yes", "--appendfsync", "always"}, [3]int{60, 60, 0}},
		"without persistence": {nil, [3]int{30, 30, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			captureLogs(t)
			srv := redistest.Start(t, tt.args...)
			m := newMetered(t, ginlimit.NewLimiter(srv.Client(t)))
			m.meanwhile = func() {
				srv.Kill()
				srv.Restart()
				require.Eventually(t, func() bool { return m.send("Aside", "1") == http.StatusOK }, 5*time.Second,
					20*time.Millisecond)
			}
			require.Equal(t, http.StatusOK, m.send())
			require.Equal(t, tt.want, m.found())
		})
	}
	t.Run("and stays away", func(t *testing.T) {
		logs := captureLogs(t)
		c := newClock()
		srv := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
		m := newMetered(t, ginlimit.NewLimiter(srv.Client(t), ginlimit.WithClock(c.now)))
		m.meanwhile = srv.Kill
		require.Equal(t, http.StatusOK, m.send())
		require.Contains(t, logs.String(), "what was reserved stays taken")
		srv.Restart()
		m.meanwhile = nil
		require.Eventually(t, func() bool {
			_, err := m.limiter.Usage(t.Context(), m.id, m.limits)
			return err == nil
		}, 5*time.Second, 20*time.Millisecond)
		require.Equal(t, [3]int{100, 100, 1}, m.found())
		c.advance(15 * time.Second)
		require.Equal(t, [3]int{100, 100, 0}, m.found(), "the slot is back when its lease ends")
		c.advance(45 * time.Second)
		require.Equal(t, [3]int{0, 100, 0}, m.found(), "and each budget after its window")
	})
}

// A failover in the middle of a request loses at most what was reserved, and gives nothing twice.
func TestTokensOverAFailover(t *testing.T) {
	captureLogs(t)
	set := redistest.StartSentinel(t)
	m := newMetered(t, ginlimit.NewLimiter(sentinelClient(t, set)))
	m.meanwhile = func() {
		require.NoError(t, set.Master.Client(t).Wait(t.Context(), 1, 5*time.Second).Err())
		set.Master.Kill()
		require.Eventually(
			t,
			func() bool { return m.send("Aside", "1") == http.StatusOK },
			time.Minute,
			20*time.Millisecond,
		)
	}
	require.Equal(t, http.StatusOK, m.send())
	require.Equal(t, [3]int{60, 60, 0}, m.found())
}
