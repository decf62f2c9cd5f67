package redisclient

import (
	"strings"
	"testing"

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
	loaded := luascripts.SlidingWindow.Exists(t.Context(), c).Val()
	require.Equal(t, []bool{true}, loaded, "the scripts are loaded")
	require.Empty(t, c.Keys(t.Context(), "*").Val(), "nothing else is written")
}

// R7: the policy is read from INFO, since CONFIG is missing on hosted Redis, and from CONFIG where INFO is.
func TestSelfCheckOfEviction(t *testing.T) {
	limited := []string{"--maxmemory", "4mb", "--maxmemory-policy"}
	for name, more := range map[string][]string{
		"both":           nil,
		"no CONFIG":      {"--rename-command", "CONFIG", ""},
		"CONFIG renamed": {"--rename-command", "CONFIG", "c0nfig"},
	} {
		for _, policy := range []string{"volatile-lru", "allkeys-lru", "volatile-ttl", "allkeys-random"} {
			srv := redistest.Start(t, append(append(limited, policy), more...)...)
			require.EqualError(t, SelfCheck(t.Context(), connect(t, srv.URL())), "redisclient: maxmemory-policy is "+
				policy+", which may evict the counts of users and so admit too much; want noeviction", name)
		}
		srv := redistest.Start(t, append(append(limited, "noeviction"), more...)...)
		require.NoError(t, SelfCheck(t.Context(), connect(t, srv.URL())), name)
		srv = redistest.Start(t, append([]string{"--maxmemory-policy", "allkeys-lru"}, more...)...)
		require.NoError(t, SelfCheck(t.Context(), connect(t, srv.URL())),
			"%s: without maxmemory nothing is evicted", name)
	}

	srv := redistest.Start(t, append(limited, "allkeys-lru")...)
	rules := []string{"reset", "on", ">pw", "allkeys", "+@all", "-info"}
	require.NoError(t, srv.Client(t).ACLSetUser(t.Context(), "bob", rules...).Err())
	err := SelfCheck(t.Context(), connect(t, "redis://bob:pw@"+srv.Addr))
	require.ErrorContains(t, err, "maxmemory-policy is allkeys-lru", "without INFO")
}

func TestSelfCheckOfAReplica(t *testing.T) {
	master := redistest.Start(t)
	replica := redistest.Start(t)
	host, port := split(t, master.Addr)
	require.NoError(t, replica.Client(t).ReplicaOf(t.Context(), host, port).Err())
	require.ErrorContains(t, SelfCheck(t.Context(), connect(t, replica.URL())), "is a replica")
}

func TestSelfCheckPermissions(t *testing.T) {
	srv := redistest.Start(t)
	admin := srv.Client(t)
	user := func(name string, rules ...string) redis.UniversalClient {
		rules = append([]string{"reset", "on", ">pw"}, rules...)
		require.NoError(t, admin.ACLSetUser(t.Context(), name, rules...).Err())
		return connect(t, "redis://"+name+":pw@"+srv.Addr)
	}
	// The smallest rules, as docs/redis.md gives them.
	minimal := strings.Fields(`~ratelimit:* -@all +eval +evalsha +script|load +time +zremrangebyscore +zcard
		+zscore +zrange +zadd +expire +zcount +zrangebyscore +zrem +pttl +pexpire +unlink`)
	require.NoError(t, SelfCheck(t.Context(), user("minimal", minimal...)))
	for name, tt := range map[string]struct{ rule, want string }{
		"loader": {"-script|load", "the scripts cannot be loaded: this user may not run script|load"},
		"caller": {"-evalsha", "the scripts cannot be run: sliding_window.lua: this user may not run evalsha"},
		"runner": {"-zcard", "the scripts cannot be run: sliding_window.lua: this user may not run"},
		"other": {"resetkeys",
			"the scripts cannot be run: sliding_window.lua: this user may not use keys ratelimit:*"},
	} {
		err := SelfCheck(t.Context(), user(name, append(minimal, tt.rule)...))
		require.ErrorContains(t, err, tt.want, name)
		require.NotContains(t, err.Error(), name, "R15: the user's name")
	}
	for _, command := range strings.Fields("zadd expire zscore zrange zcount zrangebyscore zrem pttl unlink") {
		lacking := SelfCheck(t.Context(), user("lacks-"+command, append(minimal, "-"+command)...))
		require.ErrorContains(t, lacking, "cannot be run", command)
	}
}

// NewCluster with one address, New with it twice and New with all see the same; R15: a node is named by its
// id and port, for its host is one of those given.
func TestSelfCheckOfACluster(t *testing.T) {
	cluster := redistest.StartCluster(t, 3, 0)
	first := cluster.Nodes[0].Addr
	one, err := NewCluster(first)
	require.NoError(t, err)
	t.Cleanup(func() { _ = one.Close() })
	clients := []redis.UniversalClient{one, connect(t, first, first), connect(t, cluster.Addrs()...)}
	for _, c := range clients {
		require.NoError(t, SelfCheck(t.Context(), c))
	}
	for _, node := range cluster.Nodes {
		err := SelfCheck(t.Context(), connect(t, node.Addr))
		require.ErrorContains(t, err, "belongs to a Cluster, which this client does not know")
		require.NotContains(t, err.Error(), "\n", "a MOVED says no more")
		require.NotContains(t, err.Error(), "127.0.0.1")
	}
	bad := cluster.Nodes[1].Client(t)
	require.NoError(t, bad.ConfigSet(t.Context(), "maxmemory", "50mb").Err())
	require.NoError(t, bad.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-random").Err())
	id := bad.ClusterMyID(t.Context()).Val()
	_, port := split(t, cluster.Nodes[1].Addr)
	for _, c := range clients {
		err := SelfCheck(t.Context(), c)
		want := "redisclient: node " + id[:8] + " on port " + port + ": maxmemory-policy is allkeys-random, "
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n", "the other nodes are good")
		require.NotContains(t, err.Error(), "127.0.0.1")
	}

	cluster.Nodes[2].Kill()
	err = SelfCheck(t.Context(), one)
	require.ErrorContains(t, err, ": connection refused")
	require.ErrorContains(t, err, "maxmemory-policy is allkeys-random")
	require.Len(t, strings.Split(err.Error(), "\n"), 2, "a line each")
	require.NotContains(t, err.Error(), "127.0.0.1")
}

func TestTooOld(t *testing.T) {
	for version, want := range map[string]bool{
		"6.0.16": true, "5.0": true, "6.2.0": false, "7.0.15": false, "10.1": false, "": false, "valkey": false,
	} {
		require.Equal(t, want, tooOld(version), version)
	}
}
