package ginlimit_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit/redisclient"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// An outage is a way for Redis not to answer in time.
type outage struct {
	query string // of the client's URL
	begin func(*testing.T, *site) (end func())
}

// outages are the common ones. Afterwards Redis answers again.
var outages = map[string]outage{
	"refused": {"", func(_ *testing.T, s *site) func() {
		s.srv.Kill()
		return s.srv.Restart
	}},
	"refused until the pool gave up": {"?pool_size=1", func(_ *testing.T, s *site) func() {
		s.srv.Kill()
		return s.srv.Restart
	}},
	"SYN dropped": {"", func(_ *testing.T, s *site) func() {
		s.proxy.Block()
		return s.proxy.Pass
	}},
	"SYN dropped until the pool gave up": {"?pool_size=1", func(_ *testing.T, s *site) func() {
		s.proxy.Block()
		return s.proxy.Pass
	}},
	"hung": {"", func(_ *testing.T, s *site) func() {
		s.srv.Pause()
		return s.srv.Resume
	}},
	"slow": {"", func(_ *testing.T, s *site) func() {
		s.proxy.Delay(300 * time.Millisecond)
		return func() { s.proxy.Pass() }
	}},
	"pool exhausted": {"?pool_size=1", func(t *testing.T, s *site) func() {
		hung := s.rdb.Conn() // the application's own use of the client, which does not end
		require.NoError(t, hung.Ping(t.Context()).Err())
		return func() { require.NoError(t, hung.Close()) }
	}},
}

// site is a Redis, a proxy in front of it and a client of redisclient that goes through the proxy.
type site struct {
	srv   *redistest.Server
	proxy *redistest.Proxy
	rdb   *redis.Client
}

func newSite(t *testing.T, query string) *site {
	t.Helper()
	srv := redistest.Start(t)
	proxy := redistest.NewProxy(t, srv.Addr)
	return &site{srv, proxy, limiterClient(t, "redis://"+proxy.Addr+query)}
}

func limiterClient(t *testing.T, url string) *redis.Client {
	t.Helper()
	c, err := redisclient.New(url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c.(*redis.Client)
}
