package redistest_test

import (
	"testing"

	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

var incr = redis.NewScript(`return redis.call('INCR', KEYS[1])`)

// through connects to the server by way of the proxy; a lost reply is an error unless retried.
func through(t *testing.T, p *redistest.Proxy, retries int) *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: p.Addr, MaxRetries: retries})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func TestProxyLosesExactlyThoseReplies(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr)
	rdb := through(t, p, -1)
	p.DropReplies(2)

	for i, lost := range []bool{true, true, false, false} {
		got, err := incr.Eval(t.Context(), rdb, []string{"n"}).Int()
		require.NoError(t, rdb.Ping(t.Context()).Err(), "other commands pass")
		if lost {
			require.Error(t, err, "call %d", i)
			continue
		}
		require.NoError(t, err, "call %d", i)
		require.Equal(t, i+1, got, "the server ran those whose reply was lost")
	}
	require.Equal(t, 2, p.Dropped())
	require.Equal(t, 4, s.Calls(t, "eval"))
	require.Equal(t, 4, s.Calls(t, "incr"))
}

func TestProxyMakesClientsRepeatThemselves(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr)
	rdb := through(t, p, 0) // the default, 3
	p.DropReplies(3)

	got, err := incr.Run(t.Context(), rdb, []string{"n"}).Int() // NOSCRIPT first: nothing ran, so nothing is lost
	require.NoError(t, err)
	require.Equal(t, 4, got)
	require.Equal(t, 3, p.Dropped())
	require.Equal(t, 1, s.Calls(t, "evalsha"))
	require.Equal(t, 4, s.Calls(t, "eval"))
}

func TestProxyCutsAPipelineAtTheLostReply(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr)
	rdb := through(t, p, 0)
	p.DropReplies(1)

	pipe := rdb.Pipeline()
	pipe.Incr(t.Context(), "before")
	incr.Eval(t.Context(), pipe, []string{"lost"})
	pipe.Incr(t.Context(), "behind")
	_, err := pipe.Exec(t.Context()) // sent twice

	require.NoError(t, err)
	require.Equal(t, []any{"2", "2", "1"}, s.Client(t).MGet(t.Context(), "before", "lost", "behind").Val())
	require.Equal(t, 1, p.Dropped())
}

// All the shapes of a RESP3 reply pass unharmed.
func TestProxyPassesReplies(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--enable-debug-command", "local")
	rdb := through(t, redistest.NewProxy(t, s.Addr), -1)

	for _, kind := range []string{"string", "integer", "double", "null", "array", "set", "map", "attrib", "verbatim", "bignum",
		"true"} {
		_, err := rdb.Do(t.Context(), "DEBUG", "PROTOCOL", kind).Result()
		if kind == "null" {
			require.ErrorIs(t, err, redis.Nil)
			continue
		}
		require.NoError(t, err, kind)
	}
	require.NoError(t, rdb.HSet(t.Context(), "h", "a", "1\r\n2").Err())
	require.Equal(t, map[string]string{"a": "1\r\n2"}, rdb.HGetAll(t.Context(), "h").Val())
	require.ErrorIs(t, rdb.Get(t.Context(), "missing").Err(), redis.Nil)
	require.ErrorContains(t, rdb.Incr(t.Context(), "h").Err(), "WRONGTYPE")
}

func TestProxyIsSharedByConnections(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr)
	rdb := through(t, p, -1)
	p.DropReplies(5)

	lost := make(chan bool)
	for range 20 {
		go func() { lost <- incr.Eval(t.Context(), rdb, []string{"n"}).Err() != nil }()
	}
	n := 0
	for range 20 {
		if <-lost {
			n++
		}
	}
	require.Equal(t, 5, n)
	require.Equal(t, 5, p.Dropped())
	require.Equal(t, 20, s.Calls(t, "incr"))
}

func TestProxyWithoutAServerHangsUp(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr)
	s.Kill()
	require.Error(t, through(t, p, -1).Ping(t.Context()).Err())
}
