package redistest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/stretchr/testify/require"
)

func TestClusterServesAllSlots(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0)
	rdb := c.Client(t)
	require.Len(t, c.Addrs(), 3)

	masters := map[*redistest.Server]bool{}
	for i := range 30 {
		key := fmt.Sprint("key-", i)
		require.NoError(t, rdb.Set(t.Context(), key, i, 0).Err())
		master := c.MasterOf(t, key)
		require.Equal(t, fmt.Sprint(i), master.Client(t).Get(t.Context(), key).Val())
		masters[master] = true
	}
	require.Len(t, masters, 3)
}

func TestClusterReplicatesAndFailsOver(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 1)
	require.Len(t, c.Nodes, 6)
	key := redistest.ID(t)
	old := c.MasterOf(t, key)
	require.Contains(t, c.Nodes[:3], old)
	require.NoError(t, old.Client(t).Set(t.Context(), key, "v", 0).Err())
	require.Equal(t, int64(1), old.Client(t).Wait(t.Context(), 1, 0).Val(), "replicas")

	old.Kill()
	promoted := c.MasterOf(t, key)
	require.Contains(t, c.Nodes[3:], promoted)
	require.Equal(t, "v", promoted.Client(t).Get(t.Context(), key).Val())

	old.Restart()
	require.Equal(t, promoted, c.MasterOf(t, key))
}

func TestClusterFailsOverAHungMaster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 1)
	key := redistest.ID(t)
	old := c.MasterOf(t, key)

	old.Pause()
	promoted := c.MasterOf(t, key)
	require.NotEqual(t, old, promoted)

	old.Resume()
	require.Equal(t, promoted, c.MasterOf(t, key))
}

// Two nodes may claim a slot until they hear of each other, as after a failover: the higher config epoch is
// right.
func TestMasterOfTakesTheLatest(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 2, 0)
	const key = "b" // slot 3300, of the first node
	require.Equal(t, c.Nodes[0], c.MasterOf(t, key))

	second := c.Nodes[1].Client(t)
	id, err := second.ClusterMyID(t.Context()).Result()
	require.NoError(t, err)
	require.NoError(t, second.Do(t.Context(), "cluster", "setslot", 3300, "node", id).Err())
	require.Equal(t, c.Nodes[1], c.MasterOf(t, key))
}

func TestMoveSlotTakesTheKeysAlong(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 2, 0)
	rdb := c.Client(t)
	tag := redistest.ID(t)
	key := func(i int) string { return fmt.Sprintf("k%d:{%s}", i, tag) }
	for i := range 25 {
		require.NoError(t, rdb.Set(t.Context(), key(i), i, 0).Err())
	}
	from := c.MasterOf(t, tag)
	to := c.Nodes[0]
	if to == from {
		to = c.Nodes[1]
	}

	// A client that goes on counting all the while loses nothing.
	ctx, stop := context.WithCancel(t.Context())
	counted := make(chan int)
	go func() {
		n := 0
		for ; ctx.Err() == nil; n++ {
			if err := incr.Eval(t.Context(), rdb, []string{"n:{" + tag + "}"}).Err(); err != nil {
				t.Errorf("call %d while the slot moves: %v", n, err)
				break
			}
		}
		counted <- n
	}()
	c.MoveSlot(t, tag, to)
	require.Equal(t, to, c.MasterOf(t, tag))
	c.MoveSlot(t, tag, to) // there already
	stop()
	want := <-counted
	require.Positive(t, want)

	got, err := rdb.Get(t.Context(), "n:{"+tag+"}").Int()
	require.NoError(t, err)
	require.Equal(t, want, got)
	for i := range 25 {
		require.Equal(t, fmt.Sprint(i), to.Client(t).Get(t.Context(), key(i)).Val())
	}
	require.ErrorContains(t, from.Client(t).Get(t.Context(), key(0)).Err(), "MOVED")
}
