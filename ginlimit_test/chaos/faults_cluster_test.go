package chaos

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit/redisclient"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// clusterFaults befall several servers. Those of the shared Cluster come in an order in which each leaves
// enough of it.
var clusterFaults = []fault{
	{name: "Cluster: CLUSTERDOWN", bound: nothing, opens: true, clusters: true, inject: clusterDown},
	{name: "Cluster: slots move", bound: nothing, clusters: true, inject: slotsMove},
	{name: "Cluster: a master killed, its replica promoted", bound: lostAll,
		opens: true, clusters: true, promoted: true, victims: notFree,
		inject: func(r *run) { loseMaster(r, r.cluster.Nodes[0], (*redistest.Server).Kill) }},
	{name: "Cluster: a master hung, its replica promoted", bound: lostAll,
		opens: true, clusters: true, promoted: true, victims: notFree,
		inject: func(r *run) { loseMaster(r, r.cluster.Nodes[1], (*redistest.Server).Pause) }},
	{name: "Cluster: one shard dead, no replica", bound: lostAll, opens: true, victims: notFree,
		inject: loseShard, verify: othersAreServed},
	{name: "Sentinel: the master killed, its replica promoted", bound: lostAll, opens: true, promoted: true,
		inject: loseSentinelMaster},
}

// clusterDown takes a slot, of none of the users, from its master. A Cluster that does not cover all slots
// serves none.
func clusterDown(r *run) {
	r.onCluster()
	admin := r.cluster.Client(r.T)
	key := redistest.ID(r)
	slot := int(admin.ClusterKeySlot(r.Context(), key).Val())
	owner := r.cluster.MasterOf(r, key)
	nodes := map[*redistest.Server]*redis.Client{}
	for _, node := range r.cluster.Nodes {
		nodes[node] = node.Client(r.T)
	}
	allSay := func(state string) bool {
		for _, node := range nodes {
			if !strings.Contains(node.ClusterInfo(context.Background()).Val(), "cluster_state:"+state) {
				return false
			}
		}
		return true
	}
	r.inflict(func() {
		require.Eventually(r, func() bool {
			_ = nodes[owner].ClusterDelSlots(context.Background(), slot).Err() // first, or it would tell the others
			for _, node := range nodes {
				_ = node.ClusterDelSlots(context.Background(), slot).Err()
			}
			return allSay("fail")
		}, 10*time.Second, 5*time.Millisecond)
	}, time.Second)
	r.heal(func() {
		require.NoError(r, nodes[owner].ClusterAddSlots(r.Context(), slot).Err())
		require.Eventually(r, func() bool { return allSay("ok") }, 30*time.Second, 5*time.Millisecond)
	})
}

// slotsMove moves two users, with all that they have used up, to other masters.
func slotsMove(r *run) {
	r.onCluster()
	r.inflict(func() {
		for _, u := range []*user{r.users[nil][0], r.users[r.services[0]][1]} {
			key := r.key(u, time.Minute)
			from, to := r.cluster.MasterOf(r, key), r.cluster.Nodes[0]
			if from == to {
				to = r.cluster.Nodes[1]
			}
			r.cluster.MoveSlot(r, key, to)
		}
	}, 500*time.Millisecond)
	r.heal(func() {})
}

func notFree(u *user) bool { return u.profile != free }

// placeOn has all users but the free ones on a master, and those elsewhere.
func (r *run) placeOn(victim *redistest.Server) {
	admin := r.cluster.Client(r.T)
	r.place = func(u *user) bool {
		owner, err := admin.MasterForKey(r.Context(), "{"+u.id+"}")
		require.NoError(r, err)
		return notFree(u) == (owner.Options().Addr == victim.Addr)
	}
}

// loseMaster takes a master away that has all users but the free ones.
func loseMaster(r *run, victim *redistest.Server, lose func(*redistest.Server)) {
	r.placeOn(victim)
	r.onCluster()
	r.inflict(func() { lose(victim) }, 500*time.Millisecond)
	r.heal(func() { require.NotEqual(r, victim, r.cluster.MasterOf(r, r.key(r.users[nil][0], time.Minute))) })
}

// loseShard kills a master that has all users but the free ones, and no replica, in a Cluster that goes on
// serving its other slots.
func loseShard(r *run) {
	r.cluster = redistest.StartCluster(r.T, 3, 0)
	for _, node := range r.cluster.Nodes {
		set := node.Client(r.T).ConfigSet(r.Context(), "cluster-require-full-coverage", "no")
		require.NoError(r, set.Err())
	}
	victim := r.cluster.Nodes[0]
	r.placeOn(victim)
	r.onCluster()
	r.inflict(victim.Kill, 1500*time.Millisecond)
	r.heal(func() {
		victim.Restart()
		node := victim.Client(r.T)
		require.Eventually(r, func() bool { // it takes writes again two seconds after its start
			return strings.Contains(node.ClusterInfo(context.Background()).Val(), "cluster_state:ok")
		}, 30*time.Second, 5*time.Millisecond)
	})
}

// loseSentinelMaster kills the master of a Sentinel set, to which clients have connected with the settings of
// redisclient.
func loseSentinelMaster(r *run) {
	set := redistest.StartSentinel(r.T)
	template, err := redisclient.New(set.Master.URL())
	require.NoError(r, err)
	require.NoError(r, template.Close())
	o := template.(*redis.Client).Options()
	r.serve(set.Master.Client(r.T), func() redis.UniversalClient { return set.Client(r.T, o) })
	r.inflict(set.Master.Kill, 500*time.Millisecond)
	replica := set.Replica.Client(r.T)
	r.heal(func() {
		require.Eventually(r, func() bool {
			return strings.Contains(replica.Info(context.Background(), "replication").Val(), "role:master")
		}, time.Minute, 5*time.Millisecond)
	})
}
