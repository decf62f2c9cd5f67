package redistest

import (
	"crypto/rand"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// Client connects to the Redis at RATELIMIT_TEST_REDIS_URL if that is set, else to a private server as by
// [Start]. It is closed at the end of the test. The Redis may be shared: never flush it, and make keys from
// [ID].
func Client(tb testing.TB) *redis.Client {
	tb.Helper()
	url := os.Getenv("RATELIMIT_TEST_REDIS_URL")
	if url == "" {
		return Start(tb).Client(tb)
	}
	opt, err := redis.ParseURL(url)
	require.NoError(tb, err, "RATELIMIT_TEST_REDIS_URL")
	rdb := redis.NewClient(opt)
	tb.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// ID is a user id that no other test and no other run uses, of characters that stand in a key as they are.
func ID(testing.TB) string { return "u-" + rand.Text() }
