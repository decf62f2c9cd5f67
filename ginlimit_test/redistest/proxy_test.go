package redistest_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

var incr = redis.NewScript(`return redis.call('INCR', KEYS[1])`)

// connectThrough is a client of the server by way of the proxy; a lost reply is an error unless retried.
func connectThrough(t *testing.T, p *redistest.Proxy, retries int) *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: p.Addr, MaxRetries: retries})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func TestProxyLosesExactlyThoseReplies(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr)
	rdb := connectThrough(t, p, -1)
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
	rdb := connectThrough(t, p, 0) // the default, 3
	p.DropReplies(3)

	// NOSCRIPT first: nothing ran, so nothing is lost
	got, err := incr.Run(t.Context(), rdb, []string{"n"}).Int()
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
	rdb := connectThrough(t, p, 0)
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

// RESP3 replies of every shape pass unchanged.
func TestProxyPassesReplies(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--enable-debug-command", "local")
	rdb := connectThrough(t, redistest.NewProxy(t, s.Addr), -1)

	for _, kind := range []string{"string", "integer", "double", "null", "array", "set", "map", "attrib",
		"verbatim", "bignum",
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
	rdb := connectThrough(t, p, -1)
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
	require.Error(t, connectThrough(t, p, -1).Ping(t.Context()).Err())
}

func TestProxyDelaysReplies(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr)
	rdb := connectThrough(t, p, -1)
	require.NoError(t, rdb.Ping(t.Context()).Err())
	p.Delay(200 * time.Millisecond)

	begin := time.Now()
	_, err := rdb.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
		for range 5 {
			pipe.Incr(t.Context(), "n")
		}
		return nil
	})
	require.NoError(t, err)
	took := time.Since(begin)
	require.GreaterOrEqual(t, took, 200*time.Millisecond)
	require.Less(t, took, time.Second, "a pipeline is one reply")

	p.Pass()
	require.Equal(t, "5", s.Client(t).Get(t.Context(), "n").Val())
	begin = time.Now()
	require.NoError(t, rdb.Ping(t.Context()).Err())
	require.Less(t, time.Since(begin), 200*time.Millisecond)
}

// How long to wait for an answer that should come, and for one that should not.
const patient, impatient = 10 * time.Second, 200 * time.Millisecond

// ping sends PING on a connection and waits for the answer.
func ping(c net.Conn, wait time.Duration) error {
	if err := c.SetDeadline(time.Now().Add(wait)); err != nil {
		return err
	}
	if _, err := c.Write([]byte("*1\r\n$4\r\nPING\r\n")); err != nil {
		return err
	}
	_, err := c.Read(make([]byte, 16))
	return err
}

// dialAndPing does so on a new connection, which it leaves open.
func dialAndPing(t *testing.T, p *redistest.Proxy, wait time.Duration) (net.Conn, error) {
	c, err := net.DialTimeout("tcp", p.Addr, wait)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, ping(c, wait)
}

// However a proxy is cut, what is sent on a connection that was there, or on a new one, does not arrive;
// after Pass all is as before. It may be cut more than once.
func TestProxyIsCut(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cut       func(*redistest.Proxy)
		there, on string // the errors of a connection that was there, and of a new one
	}{
		"Block":   {(*redistest.Proxy).Block, "EOF|reset|broken pipe", "dial .*timeout"},
		"Reset":   {(*redistest.Proxy).Reset, "reset|broken pipe", "reset|broken pipe"},
		"Swallow": {(*redistest.Proxy).Swallow, "read .*timeout", "read .*timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			p := redistest.NewProxy(t, s.Addr)
			for range 2 {
				there, err := dialAndPing(t, p, patient)
				require.NoError(t, err)
				calls := s.Calls(t, "ping")
				tt.cut(p)
				err = ping(there, impatient)
				require.Error(t, err)
				require.Regexp(t, tt.there, err.Error())
				for range 3 {
					_, err = dialAndPing(t, p, impatient)
					require.Error(t, err)
					require.Regexp(t, tt.on, err.Error())
				}
				require.Equal(t, calls, s.Calls(t, "ping"))
				p.Pass()
			}
			_, err := dialAndPing(t, p, patient)
			require.NoError(t, err)
		})
	}
}

// A client learns at once that the server has gone, and a test that ends while the server hangs does not wait
// for it.
func TestProxyHangsUpForTheServer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, err := dialAndPing(t, redistest.NewProxy(t, s.Addr), patient)
	require.NoError(t, err)
	s.Pause()
	require.ErrorContains(t, ping(c, impatient), "timeout")
	t.Run("a test that ends", func(t *testing.T) {
		_, err := dialAndPing(t, redistest.NewProxy(t, s.Addr), impatient)
		require.ErrorContains(t, err, "timeout")
	})
	s.Kill()
	require.NoError(t, c.SetDeadline(time.Now().Add(patient)))
	_, err = c.Read(make([]byte, 16))
	require.ErrorIs(t, err, io.EOF)
}
