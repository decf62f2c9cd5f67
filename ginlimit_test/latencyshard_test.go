package ginlimit_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/faulttest"
)

// The bound holds for the users of a dead shard, too, whose breaker opens. Users of the other shards, who
// call in turns with them, do not wait at all.
func TestLatencyBoundOfADeadShard(t *testing.T) {
	captureLogs(t)
	lag := faulttest.MeasureLag(t)
	s := startShards(t)
	apis, tooks := map[string]*api{}, map[string]*stopwatch{}
	for mode, opts := range modes {
		tooks[mode] = &stopwatch{}
		limiter := ginlimit.New(ginlimit.NewLimiter(clusterClient(t, s.Cluster)), resolver, opts...)
		apis[mode] = serve(t, tooks[mode].measure, limiter)
		for _, node := range s.Nodes {
			user := s.user(t, node)
			decides := func() bool { return apis[mode].as(user).StatusCode == http.StatusOK }
			require.Eventually(t, decides, 10*time.Second, time.Millisecond)
		}
	}
	s.Nodes[0].Kill()
	for mode, api := range apis {
		t.Run(mode, func(t *testing.T) {
			took := tooks[mode]
			call := func(user string) (int, faulttest.Span) {
				took.restart()
				status := api.as(user).StatusCode
				return status, took.all()[0]
			}
			var dead, alive []faulttest.Span
			for i := range 50 {
				status, d := call(s.user(t, s.Nodes[0]))
				require.Equal(t, http.StatusServiceUnavailable, status)
				require.LessOrEqual(t, d.Length(), lag.Allow(ginlimit.DefaultTimeout, d))
				dead = append(dead, d)

				status, d = call(s.user(t, s.Nodes[1+i%2]))
				if lag.During(d) < faulttest.Computing {
					require.Equal(t, http.StatusOK, status)
				}
				alive = append(alive, d)
			}
			require.Less(t, median(dead[5:]), time.Millisecond, "an open breaker does not ask")
			t.Logf("dead shard: first %v, median %v; others: median %v", dead[0].Length(), median(dead[5:]),
				median(alive))
		})
	}
}
