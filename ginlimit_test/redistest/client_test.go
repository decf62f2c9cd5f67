package redistest_test

import (
	"testing"

	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/stretchr/testify/require"
)

func TestClientOfASharedRedis(t *testing.T) {
	s := redistest.Start(t)
	t.Setenv("RATELIMIT_TEST_REDIS_URL", s.URL()+"?client_name=shared")
	rdb := redistest.Client(t)
	require.Equal(t, s.Addr, rdb.Options().Addr)
	require.Equal(t, "shared", rdb.ClientGetName(t.Context()).Val())
}

func TestClientOfAPrivateRedis(t *testing.T) {
	t.Setenv("RATELIMIT_TEST_REDIS_URL", "")
	require.Equal(t, "PONG", redistest.Client(t).Ping(t.Context()).Val())
}

func TestIDIsNew(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		id := redistest.ID(t)
		require.Regexp(t, `^u-[0-9A-Z]{20,}$`, id)
		require.False(t, seen[id], id)
		seen[id] = true
	}
}
