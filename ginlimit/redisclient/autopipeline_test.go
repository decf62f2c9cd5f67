package redisclient

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func configOf(t *testing.T, c redis.UniversalClient) redis.AutoPipelineOptions {
	t.Helper()
	t.Cleanup(func() { _ = c.Close() })
	p, err := AutoPipeline(c)
	require.NoError(t, err)
	return p.(interface {
		Config() redis.AutoPipelineOptions
	}).Config()
}

func TestAutoPipelineSettings(t *testing.T) {
	for name, urls := range map[string][]string{"a server": {"127.0.0.1:1"}, "a Cluster": {"127.0.0.1:1", "127.0.0.1:2"}} {
		c, err := New(urls...)
		require.NoError(t, err)
		o := configOf(t, c)
		require.Equal(t, []any{16, 4, true}, []any{o.MaxBatchSize, o.MaxConcurrentBatches, o.Unordered}, name)
	}
	own := &redis.AutoPipelineOptions{MaxBatchSize: 7}
	require.Equal(t, 7, configOf(t, redis.NewClient(&redis.Options{AutoPipelineOptions: own})).MaxBatchSize)
	require.Equal(t, 7, configOf(t, redis.NewClusterClient(&redis.ClusterOptions{AutoPipelineOptions: own})).MaxBatchSize)
}

func TestAutoPipelineRefuses(t *testing.T) {
	closed := redis.NewClient(&redis.Options{})
	require.NoError(t, closed.Close())
	contradictory := redis.NewClient(&redis.Options{AutoPipelineOptions: &redis.AutoPipelineOptions{MaxConcurrentBatches: 2}})
	t.Cleanup(func() { _ = contradictory.Close() })
	ring := redis.NewRing(&redis.RingOptions{})
	t.Cleanup(func() { _ = ring.Close() })
	for want, c := range map[string]redis.UniversalClient{
		"client is closed": closed,
		"Unordered":        contradictory,
		"*redis.Ring is no *redis.Client or *redis.ClusterClient": ring,
	} {
		_, err := AutoPipeline(c)
		require.ErrorContains(t, err, "redisclient: ")
		require.ErrorContains(t, err, want)
	}
}
