package redisclient

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

func TestNewSingle(t *testing.T) {
	for _, address := range []string{
		"redis://127.0.0.1:6379", "127.0.0.1:6379", " 127.0.0.1:6379 ", "redis://user:pw@127.0.0.1:6379/0",
	} {
		c, err := New(address)
		require.NoError(t, err, address)
		t.Cleanup(func() { _ = c.Close() })
		o := c.(*redis.Client).Options()
		require.Equal(t, "127.0.0.1:6379", o.Addr)
		require.True(t, o.ContextTimeoutEnabled)
		require.Equal(t, 100*time.Millisecond, o.ReadTimeout)
		require.Equal(t, 100*time.Millisecond, o.WriteTimeout)
		require.Equal(t, 100*time.Millisecond, o.PoolTimeout)
		require.Equal(t, 500*time.Millisecond, o.DialTimeout)
		require.Equal(t, 1, o.DialerRetries)
		require.Equal(t, 1, o.MaxRetries)
		require.Nil(t, o.AutoPipelineOptions, "the application's own pipelines keep their order")
	}
}

func TestNewHonoursTheURL(t *testing.T) {
	c, err := New("rediss://user:p%40ss@redis.example:6380/3?read_timeout=250ms&pool_size=50&max_retries=-1")
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	o := c.(*redis.Client).Options()
	require.Equal(t, "redis.example:6380", o.Addr)
	require.Equal(t, "p@ss", o.Password)
	require.Equal(t, 3, o.DB)
	require.NotNil(t, o.TLSConfig)
	require.Equal(t, 250*time.Millisecond, o.ReadTimeout)
	require.Equal(t, 50, o.PoolSize)
	require.Zero(t, o.MaxRetries, "-1 is none, which go-redis keeps as 0")
}

func TestNewCluster(t *testing.T) {
	c, err := New("redis://user:pw@127.0.0.1:7000?max_retry_backoff=7s&pool_fifo=true&max_concurrent_dials=3",
		"127.0.0.1:7001", "redis://127.0.0.1:7002")
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	o := c.(*redis.ClusterClient).Options()
	require.Equal(t, []string{"127.0.0.1:7000", "127.0.0.1:7001", "127.0.0.1:7002"}, o.Addrs)
	require.Equal(t, "user", o.Username)
	require.Equal(t, "pw", o.Password)
	require.True(t, o.ContextTimeoutEnabled)
	require.Equal(t, 2*time.Second, o.ClusterStateReloadInterval)
	require.Equal(t, 100*time.Millisecond, o.ReadTimeout)
	require.Equal(t, 7*time.Second, o.MaxRetryBackoff)
	require.True(t, o.PoolFIFO)
	require.Equal(t, 3, o.MaxConcurrentDials)
}

func TestNewRefuses(t *testing.T) {
	const secret = "s3cr3t"
	for _, tt := range []struct {
		urls []string
		want string
	}{
		{nil, "no address"},
		{[]string{""}, "address 1 of 1: want redis://host:port or host:port"},
		{[]string{"localhost"}, "want redis://host:port"},
		{[]string{":6379"}, "want redis://host:port"},
		{[]string{"http://localhost:6379"}, `unknown scheme "http"`},
		{[]string{"redis://user:" + secret + "%zz@localhost:6379"}, "percent-encoded"},
		{[]string{"redis://:12/" + secret + "@localhost:6379"}, "percent-encoded"},
		{[]string{"redis://:12?" + secret + "=1@localhost"}, "percent-encoded"},
		{[]string{"redis://:12/3?db=" + secret + "@localhost"}, "percent-encoded"},
		{[]string{"redis://localhost:6379/x"}, "database"},
		{[]string{"redis://localhost:6379?read_timeout=soon"}, "read_timeout"},
		{[]string{"redis://localhost:6379?colour=red"}, "unexpected option: colour"},
		{[]string{"127.0.0.1:7000", ""}, "address 2 of 2"},
		{[]string{"127.0.0.1:7000", "redis://127.0.0.1:7001/2"}, "address 2 of 2: a database other than 0"},
		{[]string{"redis://u:" + secret + "@h:1", "redis://u:" + secret + "2@h:2"}, "credentials differ"},
		{[]string{"h:1", "rediss://h:2"}, "TLS belongs to address 1"},
		{[]string{"h:1", "redis://h:2?read_timeout=5s"}, "settings belong to address 1"},
		{[]string{"unix:///tmp/redis.sock", "127.0.0.1:7001"}, "Unix socket"},
	} {
		_, err := New(tt.urls...)
		require.ErrorContains(t, err, tt.want, "%q", tt.urls)
		require.NotContains(t, err.Error(), secret)
		require.True(t, strings.HasPrefix(err.Error(), "redisclient: "), err)
	}
}

func split(t *testing.T, addr string) (host, port string) {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	return host, port
}

func TestNewServes(t *testing.T) {
	srv := redistest.Start(t)
	c, err := New(srv.URL())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.Ping(t.Context()).Err())
}
