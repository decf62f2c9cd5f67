package faulttest_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit_test/faulttest"
)

// echo is a server that sends each line back.
func echo(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, 5*time.Second)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func ask(c net.Conn) (took time.Duration, err error) {
	begin := time.Now()
	if _, err = fmt.Fprintln(c, "hello"); err == nil {
		_, err = bufio.NewReader(c).ReadString('\n')
	}
	return time.Since(begin), err
}

func TestRoadIsSlow(t *testing.T) {
	t.Parallel()
	road := faulttest.NewRoad(t, echo(t))
	c := dial(t, road.Addr)
	_, err := ask(c)
	require.NoError(t, err)
	road.Slow(50 * time.Millisecond)
	took, err := ask(c)
	require.NoError(t, err)
	require.GreaterOrEqual(t, took, 50*time.Millisecond)
}

func TestRoadIsBlocked(t *testing.T) {
	t.Parallel()
	road := faulttest.NewRoad(t, echo(t))
	before := dial(t, road.Addr)
	_, err := ask(before)
	require.NoError(t, err)
	for range 2 {
		road.Block()
		_, err = ask(before)
		require.Error(t, err, "it is cut")
		for range 3 {
			_, err := net.DialTimeout("tcp", road.Addr, 50*time.Millisecond)
			require.ErrorContains(t, err, "timeout", "neither answered nor refused")
		}
		road.Unblock()
		before = dial(t, road.Addr)
		_, err = ask(before)
		require.NoError(t, err)
	}
}
