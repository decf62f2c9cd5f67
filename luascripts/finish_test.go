package luascripts_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

var oneMinute = []budget{newBudget(9, time.Minute)}

func TestGiveBackPutsTheTTLBack(t *testing.T) {
	rdb := redistest.Client(t)
	key := redistest.ID(t)
	run(t, rdb, key, epoch, time.Minute, 9, "a")
	run(t, rdb, key, epoch+30_000, time.Minute, 9, "b")

	at := strconv.Itoa(epoch + 30_000)
	require.NoError(t, callGiveBack(t.Context(), rdb, at, "b", []string{key}, oneMinute))
	require.Equal(t, []string{"a"}, rdb.ZRange(t.Context(), key, 0, -1).Val())
	ttl := rdb.PTTL(t.Context(), key).Val()
	require.InDelta(t, 31*time.Second, ttl, float64(time.Second), "the entry of 30 s ago gave it 61 s")

	require.NoError(t, callGiveBack(t.Context(), rdb, at, "b", []string{key}, oneMinute), "safe to repeat")
	require.NoError(t, callGiveBack(t.Context(), rdb, at, "never there", []string{key}, oneMinute))
	require.Equal(t, []string{"a"}, rdb.ZRange(t.Context(), key, 0, -1).Val())
	require.LessOrEqual(t, rdb.PTTL(t.Context(), key).Val(), ttl)
}

func TestGiveBackOfTheOnlyEntryRemovesTheKey(t *testing.T) {
	rdb := redistest.Client(t)
	key := redistest.ID(t)
	run(t, rdb, key, epoch, time.Minute, 9, "a")
	require.NoError(t, callGiveBack(t.Context(), rdb, strconv.Itoa(epoch), "a", []string{key}, oneMinute))
	require.Zero(t, rdb.Exists(t.Context(), key).Val())
}

func TestGiveBackNeverLengthensTheTTL(t *testing.T) {
	rdb := redistest.Client(t)
	key := redistest.ID(t)
	run(t, rdb, key, epoch+3_600_000, time.Minute, 9, "of a clock one hour ahead")
	run(t, rdb, key, epoch, time.Minute, 9, "b")
	require.NoError(t, callGiveBack(t.Context(), rdb, strconv.Itoa(epoch), "b", []string{key}, oneMinute))
	require.LessOrEqual(t, rdb.PTTL(t.Context(), key).Val(), 61*time.Second)
	require.Positive(t, rdb.PTTL(t.Context(), key).Val())
}

func TestGiveBackMendsAMissingTTL(t *testing.T) {
	rdb := redistest.Client(t)
	key := redistest.ID(t)
	run(t, rdb, key, epoch, time.Minute, 9, "a")
	run(t, rdb, key, epoch, time.Minute, 9, "b")
	require.NoError(t, rdb.Persist(t.Context(), key).Err())
	require.NoError(t, callGiveBack(t.Context(), rdb, strconv.Itoa(epoch), "b", []string{key}, oneMinute))
	require.InDelta(t, 61*time.Second, rdb.PTTL(t.Context(), key).Val(), float64(time.Second))
}

func TestGiveBackSeveralWindows(t *testing.T) {
	rdb := redistest.Client(t)
	id := redistest.ID(t)
	keys := []string{id + ":60", id + ":86400"}
	budgets := []budget{newBudget(9, time.Minute), newBudget(9, 24*time.Hour)}
	for _, member := range []string{"a", "b"} {
		_, err := callAdmit(t.Context(), rdb, serverTime, member, keys, budgets)
		require.NoError(t, err)
	}
	require.NoError(t, callGiveBack(t.Context(), rdb, serverTime, "b", keys, budgets))
	for i, ttl := range []time.Duration{61 * time.Second, 86_401 * time.Second} {
		require.Equal(t, []string{"a"}, rdb.ZRange(t.Context(), keys[i], 0, -1).Val())
		require.InDelta(t, ttl, rdb.PTTL(t.Context(), keys[i]).Val(), float64(time.Second))
	}
}

func TestResetDeletesAllKeys(t *testing.T) {
	rdb := redistest.Client(t)
	id := redistest.ID(t)
	keys := []string{id + ":60", id + ":86400", id + ":never"}
	for _, key := range keys[:2] {
		run(t, rdb, key, epoch, time.Minute, 9, "a")
	}
	require.NoError(t, callReset(t.Context(), rdb, keys))
	require.Zero(t, rdb.Exists(t.Context(), keys...).Val())
	require.NoError(t, callReset(t.Context(), rdb, keys), "nothing to forget is no error")
}
