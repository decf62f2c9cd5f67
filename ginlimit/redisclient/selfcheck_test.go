package redisclient

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/luascripts"
)

func connect(t *testing.T, urls ...string) redis.UniversalClient {
	t.Helper()
	c, err := New(urls...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestSelfCheckOfAGoodServer(t *testing.T) {
	srv := redistest.Start(t)
	c := connect(t, srv.URL())
	require.NoError(t, SelfCheck(t.Context(), c))
	require.Equal(t, []bool{true}, luascripts.SlidingWindow.Exists(t.Context(), c).Val(), "the scripts are loaded")
	require.Empty(t, c.Keys(t.Context(), "*").Val(), "nothing else is written")
}

func TestSelfCheckNamesWhatIsWrong(t *testing.T) {
	for _, policy := range []string{"allkeys-lru", "volatile-ttl"} {
		srv := redistest.Start(t, "--maxmemory", "50mb", "--maxmemory-policy", policy)
		require.ErrorContains(t, SelfCheck(t.Context(), connect(t, srv.URL())), "maxmemory-policy is "+policy)
	}
	unlimited := redistest.Start(t, "--maxmemory-policy", "allkeys-lru")
	require.NoError(t, SelfCheck(t.Context(), connect(t, unlimited.URL())), "without maxmemory nothing is evicted")

	master := redistest.Start(t)
	replica := redistest.Start(t)
	host, port := split(t, master.Addr)
	require.NoError(t, replica.Client(t).ReplicaOf(t.Context(), host, port).Err())
	require.ErrorContains(t, SelfCheck(t.Context(), connect(t, replica.URL())), "is a replica")

	down := redistest.Start(t)
	down.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	require.ErrorContains(t, SelfCheck(ctx, connect(t, down.URL())), "cannot be reached")
}

func TestSelfCheckPermissions(t *testing.T) {
	srv := redistest.Start(t)
	admin := srv.Client(t)
	user := func(name string, rules ...string) redis.UniversalClient {
		require.NoError(t, admin.ACLSetUser(t.Context(), name, append([]string{"reset", "on", ">pw"}, rules...)...).Err())
		return connect(t, "redis://"+name+":pw@"+srv.Addr)
	}
	// The minimal rules, as the README gives them.
	minimal := []string{"~ratelimit:*", "-@all", "+eval", "+evalsha", "+script|load", "+time", "+zremrangebyscore", "+zcard",
		"+zscore", "+zrange", "+zadd", "+expire", "+zcount", "+zrangebyscore", "+zrem", "+pttl", "+pexpire", "+unlink"}
	require.NoError(t, SelfCheck(t.Context(), user("minimal", minimal...)))
	require.ErrorContains(t, SelfCheck(t.Context(), user("loader", append(minimal, "-script|load")...)), "cannot be loaded")
	require.ErrorContains(t, SelfCheck(t.Context(), user("runner", append(minimal, "-zcard")...)), "cannot be run")
	require.ErrorContains(t, SelfCheck(t.Context(), user("elsewhere", append(minimal, "resetkeys", "~other:*")...)), "cannot be run")
	for _, command := range []string{"zadd", "expire", "zscore", "zrange", "zcount", "zrangebyscore", "zrem", "pttl", "unlink"} {
		lacking := SelfCheck(t.Context(), user("lacks-"+command, append(minimal, "-"+command)...))
		require.ErrorContains(t, lacking, "cannot be run", command)
	}
}

func TestSelfCheckOfACluster(t *testing.T) {
	cluster := redistest.StartCluster(t, 3, 0)
	c := connect(t, cluster.Addrs()...)
	require.NoError(t, SelfCheck(t.Context(), c))
	require.ErrorContains(t, SelfCheck(t.Context(), connect(t, cluster.Nodes[0].Addr)), "belongs to a Cluster")
	require.NoError(t, SelfCheck(t.Context(), connect(t, cluster.Nodes[0].Addr, cluster.Nodes[0].Addr)), "one address, twice")
	bad := cluster.Nodes[1].Client(t)
	require.NoError(t, bad.ConfigSet(t.Context(), "maxmemory", "50mb").Err())
	require.NoError(t, bad.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-random").Err())
	require.ErrorContains(t, SelfCheck(t.Context(), c), cluster.Nodes[1].Addr+": maxmemory-policy is allkeys-random")
}

func TestTooOld(t *testing.T) {
	for version, want := range map[string]bool{"6.0.16": true, "5.0": true, "6.2.0": false, "7.0.15": false, "10.1": false, "": false, "valkey": false} {
		require.Equal(t, want, tooOld(version), version)
	}
}
