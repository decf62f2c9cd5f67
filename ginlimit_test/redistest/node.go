package redistest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func (s *Server) nodeID(tb testing.TB) string {
	tb.Helper()
	id, err := s.need(tb, "cluster", "myid").Text()
	require.NoError(tb, err)
	return id
}

// unknown returns the nodes that this one does not know yet. A known one is listed, connected and past the
// handshake.
func (s *Server) unknown(nodes []*Server) ([]*Server, error) {
	list, err := s.do("cluster", "nodes").Text()
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for line := range strings.Lines(list) {
		// id, host:port@bus, flags, master, ping sent, pong received, config epoch, link state, slots
		if f := strings.Fields(line); len(f) >= 8 && f[7] == "connected" && !strings.Contains(f[2], "handshake") {
			addr, _, _ := strings.Cut(f[1], "@")
			known[addr] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(nodes), func(n *Server) bool { return known[n.Addr] }), nil
}

// seesCluster tells what this node still misses of a cluster whose slots lie in so many ranges, on so many
// nodes each.
func (s *Server) seesCluster(ranges, nodesEach int) error {
	cluster, err := s.fields("cluster", "info")
	if err != nil {
		return err
	}
	slots, err := s.slots()
	lacking := func(r redis.ClusterSlot) bool { return len(r.Nodes) != nodesEach }
	if err == nil && (cluster["cluster_state"] != "ok" || len(slots) != ranges ||
		slices.ContainsFunc(slots, lacking)) {
		err = fmt.Errorf("cluster_state:%s, slots: %v", cluster["cluster_state"], slots)
	}
	return err
}

// ownerOf is the address of the master that serves the slot of key, as this node sees it, and the node's
// config epoch.
func (s *Server) ownerOf(key string) (addr string, epoch int, err error) {
	slot, err := s.slotOf(key)
	if err != nil {
		return "", 0, err
	}
	cluster, err := s.fields("cluster", "info")
	if err != nil {
		return "", 0, err
	}
	if epoch, err = strconv.Atoi(cluster["cluster_my_epoch"]); err != nil {
		return "", 0, err
	}
	slots, err := s.slots()
	for _, r := range slots {
		if r.Start <= slot && slot <= r.End {
			return r.Nodes[0].Addr, epoch, nil
		}
	}
	return "", epoch, err
}

func (s *Server) slotOf(key string) (int, error) { return s.do("cluster", "keyslot", key).Int() }

func (s *Server) slots() ([]redis.ClusterSlot, error) {
	cmd := redis.NewClusterSlotsCmd(context.Background(), "cluster", "slots")
	err := s.process(cmd)
	return cmd.Val(), err
}
