package redistest_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

func TestSentinelPromotesTheReplica(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*redistest.Server){
		"killed": (*redistest.Server).Kill,
		"hung":   (*redistest.Server).Pause,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.StartSentinel(t)
			require.Len(t, s.Sentinels, 3)
			rdb := s.Client(t, &redis.Options{})
			require.NoError(t, rdb.Set(t.Context(), "k", "v", 0).Err())
			require.Equal(t, "v", s.Master.Client(t).Get(t.Context(), "k").Val())
			require.ErrorContains(t, s.Replica.Client(t).Set(t.Context(), "k", "v", 0).Err(), "READONLY")

			lose(s.Master)
			writes := func() bool { return rdb.Set(t.Context(), "k", "w", 0).Err() == nil }
			require.Eventually(t, writes, 30*time.Second, 5*time.Millisecond)
			require.Equal(t, "w", s.Replica.Client(t).Get(t.Context(), "k").Val())
		})
	}
}
