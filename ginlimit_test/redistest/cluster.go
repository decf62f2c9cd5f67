package redistest

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// Cluster is a Redis Cluster on loopback. Its node timeout is a second: a master that ends or hangs is failed
// over to one of its replicas within about three, as long as most masters live.
type Cluster struct {
	Nodes []*Server // as started, masters first; a failover does not reorder them
}

// StartCluster runs a Redis Cluster, its slots spread evenly over the masters, and returns once every node
// finds it complete and every replica is in sync (two seconds: a new master waits that long on principle). It
// ends with the test; without a redis-server it does as [Start].
func StartCluster(tb testing.TB, masters, replicasEach int) *Cluster {
	tb.Helper()
	c := startNodes(tb, masters*(1+replicasEach))
	for i, node := range c.Nodes[:masters] {
		const slots = 16384
		node.need(tb, "cluster", "addslotsrange", i*slots/masters, (i+1)*slots/masters-1)
	}
	c.meet(tb)
	for i, node := range c.Nodes[masters:] {
		node.need(tb, "cluster", "replicate", c.Nodes[i%masters].nodeID(tb))
	}
	for i, node := range c.Nodes {
		complete := func() error { return node.seesCluster(masters, 1+replicasEach) }
		node.must(await(agreeTimeout, complete), "see the whole cluster")
		if i >= masters {
			node.must(await(agreeTimeout, node.inSync), "replicate")
		}
	}
	return c
}

// startNodes runs nodes that do not know each other yet.
func startNodes(tb testing.TB, n int) *Cluster {
	tb.Helper()
	c := &Cluster{}
	for i := range n {
		node := Start(tb, "--cluster-enabled", "yes", "--cluster-node-timeout", "1000",
			"--cluster-announce-ip", "127.0.0.1", "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1")
		node.need(tb, "cluster", "set-config-epoch", i+1)
		c.Nodes = append(c.Nodes, node)
	}
	return c
}

// meet introduces the nodes to each other and returns once every node knows all of them: none replicates a
// node that it does not know. A handshake that is not answered within a second, as on a busy machine, is
// dropped for good, so those whom the first node does not know are introduced again. It tells the others of
// them.
func (c *Cluster) meet(tb testing.TB) {
	tb.Helper()
	for i, node := range c.Nodes {
		node.must(await(agreeTimeout, func() error {
			unknown, err := node.unknown(c.Nodes)
			if err != nil || len(unknown) == 0 {
				return err
			}
			if i == 0 {
				for _, other := range unknown {
					host, port := other.hostPort()
					node.need(tb, "cluster", "meet", host, port)
				}
			}
			return fmt.Errorf("does not know %v", addrs(unknown))
		}), "meet the other nodes")
	}
}

// Addrs are the addresses of all Nodes.
func (c *Cluster) Addrs() []string { return addrs(c.Nodes) }

// Client connects to the cluster with go-redis's default settings. It is closed at the end of the test.
func (c *Cluster) Client(tb testing.TB) *redis.ClusterClient {
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	tb.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// MasterOf is the node that serves the slot of key now: the one that says so itself, the latest elected if
// two still do. While none does, as between the death of a master and the failover, it waits.
func (c *Cluster) MasterOf(tb testing.TB, key string) *Server {
	tb.Helper()
	var master *Server
	require.NoError(tb, await(agreeTimeout, func() error {
		latest := -1
		for _, node := range c.Nodes {
			owner, epoch, err := node.ownerOf(key)
			if err == nil && owner == node.Addr && epoch > latest {
				master, latest = node, epoch
			}
		}
		if master == nil {
			return fmt.Errorf("no node serves the slot of %q", key)
		}
		return nil
	}))
	return master
}

// MoveSlot moves the slot of key, with all its keys, to the master to, while the cluster may be in use. It
// returns once every node that answers knows.
func (c *Cluster) MoveSlot(tb testing.TB, key string, to *Server) {
	tb.Helper()
	from := c.MasterOf(tb, key)
	if from == to {
		return
	}
	slot, err := from.slotOf(key)
	require.NoError(tb, err)
	fromID, toID := from.nodeID(tb), to.nodeID(tb)
	host, port := to.hostPort()

	to.need(tb, "cluster", "setslot", slot, "importing", fromID)
	from.need(tb, "cluster", "setslot", slot, "migrating", toID)
	for {
		keys, err := from.need(tb, "cluster", "getkeysinslot", slot, 10).Slice()
		require.NoError(tb, err)
		if len(keys) == 0 {
			break
		}
		from.need(tb, append([]any{"migrate", host, port, "", 0, 1000, "keys"}, keys...)...)
	}
	to.need(tb, "cluster", "setslot", slot, "node", toID)
	from.need(tb, "cluster", "setslot", slot, "node", toID)

	for _, node := range c.Nodes {
		node.must(await(agreeTimeout, func() error {
			if owner, _, err := node.ownerOf(key); err == nil && owner != to.Addr {
				return fmt.Errorf("takes slot %d for %s's, want %s's", slot, owner, to.Addr)
			}
			return nil
		}), "learn who has the slot")
	}
}
