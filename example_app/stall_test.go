package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
)

// talker is a provider that says the same for ever, and tells when nobody listens any more.
func talker(t *testing.T, pause time.Duration) (base string, left <-chan struct{}) {
	t.Helper()
	gone := make(chan struct{}, 1)
	p := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		event := "data: " + strings.Repeat("x", 32<<10) + "\n\n"
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, event); err != nil {
				break
			}
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(pause):
			}
		}
		gone <- struct{}{}
	}))
	t.Cleanup(p.Close)
	return p.URL, gone
}

// startWithStall runs the app with another time for readers that stall, and returns its address and what
// run would return.
func startWithStall(t *testing.T, stall time.Duration, base string) (
	addr string, stop func(), ended <-chan error,
) {
	t.Helper()
	cfg, err := loadConfig(env{"API_KEYS": ownKey + "=me:pro", "UPSTREAM_BASE_URL": base}.get)
	require.NoError(t, err)
	cfg.stallTime = stall
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- serve(ctx, newServer(cfg, ginlimit.NewMemoryLimiter()), listener, drainTime) }()
	t.Cleanup(cancel)
	return listener.Addr().String(), cancel, over
}

// listen asks for a stream over a socket of its own, with a small buffer.
func listen(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.(*net.TCPConn).SetReadBuffer(4<<10))
	fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"+
		"Content-Length: 0\r\n\r\n", ownKey)
	_, err = io.ReadFull(conn, make([]byte, 512))
	require.NoError(t, err)
	return conn
}

// R44: a client that reads nothing loses its stream, the provider's connection is free, and SIGTERM waits
// for nobody.
func TestReaderStalls(t *testing.T) {
	t.Parallel()
	base, left := talker(t, 0)
	addr, stop, ended := startWithStall(t, 300*time.Millisecond, base)
	listen(t, addr)
	select {
	case <-left:
	case <-time.After(20 * time.Second):
		t.Fatal("the provider still talks to a client that does not read")
	}
	stop()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(20 * time.Second):
		t.Fatal("SIGTERM waits for a client that does not read")
	}
}

// R44: a client that reads is not one that stalls, however long the pauses of the stream, between requests or
// of the client itself: time is given for each piece.
func TestReaderIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 10 * stallPiece
		router := gin.New()
		router.Use(recovery, endStalled(stallTime), readBody)
		router.POST("/pauses", func(c *gin.Context) {
			for range 3 {
				time.Sleep(10 * stallTime)
				_, _ = c.Writer.WriteString("data: word\n\n")
				c.Writer.Flush()
			}
			time.Sleep(10 * stallTime)
		})
		router.POST("/large", func(c *gin.Context) { c.String(200, strings.Repeat("x", size)) })
		client := pipe(t, &http.Server{Handler: router})
		answers := bufio.NewReader(client)
		ask := func(path string) io.Reader {
			fmt.Fprintf(client, "POST %s HTTP/1.1\r\nHost: x\r\n"+
				"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n", path)
			for _, status := range []int{100, 200} { // the server says 100 before a handler writes
				res, err := http.ReadResponse(answers, nil)
				require.NoError(t, err)
				require.Equal(t, status, res.StatusCode)
				if status == 200 {
					return res.Body
				}
				fmt.Fprint(client, "{}")
			}
			return nil
		}
		for range 2 {
			body, err := io.ReadAll(ask("/pauses"))
			require.NoError(t, err)
			require.Equal(t, strings.Repeat("data: word\n\n", 3), string(body))
			time.Sleep(10 * stallTime)

			large, began := ask("/large"), time.Now()
			for range size / stallPiece {
				time.Sleep(stallTime - time.Second)
				_, err := io.ReadFull(large, make([]byte, stallPiece))
				require.NoError(t, err, "after %s", time.Since(began))
			}
			_, err = io.ReadAll(large)
			require.NoError(t, err)
		}

		large := ask("/large")
		time.Sleep(stallTime + time.Second)
		_, err := io.ReadAll(large)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	})
}

// R44: the same through the app, whose stream is longer than the time.
func TestStreamTakesItsTime(t *testing.T) {
	t.Parallel()
	const stall = 300 * time.Millisecond
	p := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 2 {
			_, _ = io.WriteString(w, "data: word\n\n")
			w.(http.Flusher).Flush()
			time.Sleep(2 * stall)
		}
	}))
	t.Cleanup(p.Close)
	addr, _, _ := startWithStall(t, stall, p.URL)
	a := &app{url: "http://" + addr}
	got := a.send(t, "POST", "/v1/chat/completions", ownKey, "")
	require.Equal(t, strings.Repeat("data: word\n\n", 2), got.body)
}

// pipe serves one connection without a buffer, on whose other end the test is.
func pipe(t *testing.T, server *http.Server) net.Conn {
	t.Helper()
	client, conn := net.Pipe()
	listener := &onePipe{conn: make(chan net.Conn, 1)}
	listener.conn <- conn
	go server.Serve(listener)
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		client.Close()
	})
	return client
}

type onePipe struct {
	conn chan net.Conn
	once sync.Once
}

func (p *onePipe) Accept() (net.Conn, error) {
	conn, ok := <-p.conn
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p *onePipe) Close() error {
	p.once.Do(func() { close(p.conn) })
	return nil
}

func (*onePipe) Addr() net.Addr { return &net.UnixAddr{} }

// R44: what is left when the drain time is over is cut, a client that does not read like any other.
func TestDrainWithAStalledReader(t *testing.T) {
	t.Parallel()
	base, left := talker(t, 0)
	cfg, err := loadConfig(env{"API_KEYS": ownKey + "=me:pro", "UPSTREAM_BASE_URL": base}.get)
	require.NoError(t, err)
	require.Equal(t, time.Minute, cfg.stallTime)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- serve(ctx, newServer(cfg, ginlimit.NewMemoryLimiter()), listener, 100*time.Millisecond)
	}()
	listen(t, listener.Addr().String())
	stop()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(20 * time.Second):
		t.Fatal("the drain goes on")
	}
	<-left
}
