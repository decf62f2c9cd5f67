package ginlimit_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/redisclient"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// A Cluster behind one endpoint looks like a server to a plain client, until a script has keys of two slots:
// the failure policy decides such requests, and the log says the cure, once. R6.
func TestAClusterBehindOneEndpoint(t *testing.T) {
	node := redistest.StartCluster(t, 1, 0).Nodes[0] // owns all slots, so nothing moves
	warnings := func(logs *logBuffer) int { return strings.Count(logs.String(), "Redis is a Cluster") }
	plain := limiterClient(t, node.URL())

	for name, policy := range policies {
		t.Run(name, func(t *testing.T) {
			logs := captureLogs(t)
			told := &events{}
			l := ginlimit.NewLimiter(plain)
			opts := []ginlimit.Option{ginlimit.WithTiers(table(t, 3, 9)), ginlimit.WithAtomicWindows(),
				ginlimit.WithFailurePolicy(policy.of), ginlimit.WithObserver(told)}
			api := serve(t, ginlimit.New(l, resolver, opts...))
			images := serve(t, ginlimit.New(l.Scope("images"), resolver, opts...))
			for range 3 {
				policy.wants(t, api.as(redistest.ID(t)))
				policy.wants(t, images.as(redistest.ID(t)))
			}
			require.ErrorContains(t, told.take()[0].Err, "CROSSSLOT")
			require.Equal(t, 1, warnings(logs), "once for a limiter and its scopes")
			require.Contains(t, logs.String(), "WithHashTags")
			require.Contains(t, logs.String(), "redisclient.NewCluster")
		})
	}

	t.Run("the cures", func(t *testing.T) {
		logs := captureLogs(t)
		cluster, err := redisclient.NewCluster(node.URL())
		require.NoError(t, err)
		t.Cleanup(func() { _ = cluster.Close() })
		for _, l := range []*ginlimit.Limiter{ginlimit.NewLimiter(cluster),
			ginlimit.NewLimiter(plain, ginlimit.WithHashTags())} {
			api := serve(t, ginlimit.New(l, resolver, ginlimit.WithAtomicWindows()))
			require.Equal(t, "5 4 minute", api.as(redistest.ID(t)).limits(t))
		}
		separate := serve(t, ginlimit.New(ginlimit.NewLimiter(plain), resolver))
		require.Equal(t, "5 4 minute", separate.as(redistest.ID(t)).limits(t), "a key a script needs none")
		require.Zero(t, warnings(logs))
	})
}

// A plain client of one node of several does not find the users of the other nodes. R6.
func TestAPlainClientOfANodeOfACluster(t *testing.T) {
	logs := captureLogs(t)
	cluster := redistest.StartCluster(t, 3, 0)
	api := serve(t, ginlimit.New(ginlimit.NewLimiter(limiterClient(t, cluster.Nodes[0].URL()),
		ginlimit.WithHashTags()), resolver, ginlimit.WithAtomicWindows()))
	refused := 0
	for range 30 {
		if api.as(redistest.ID(t)).StatusCode == http.StatusServiceUnavailable {
			refused++
		}
	}
	require.Positive(t, refused)
	require.Equal(t, 1, strings.Count(logs.String(), "redisclient.NewCluster"))
}
