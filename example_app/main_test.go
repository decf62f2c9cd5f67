package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"
)

func TestDrain(t *testing.T) {
	t.Parallel()
	next := make(chan string)
	a, _ := provider(t, func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		for event := range next {
			_, _ = io.WriteString(w, event)
			w.(http.Flusher).Flush()
		}
	})
	open := a.open(t, a.request(t, "POST", "/v1/chat/completions", ownKey, nil))
	next <- "data: one\n\n"

	a.stop()
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(a.url, "http://"))
		if err == nil {
			conn.Close()
		}
		return err != nil
	}, 10*time.Second, 5*time.Millisecond, "new connections are still taken")
	require.Empty(t, a.ended, "ended with an open response")

	next <- "data: [DONE]\n\n"
	close(next)
	require.Equal(t, "data: one\n\ndata: [DONE]\n\n", read(t, open).body)
	require.NoError(t, <-a.ended)
	a.ended <- nil
}

// What is still open when the drain time is over is cut.
func TestDrainTimeIsOver(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	cut := make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		stop()
		<-r.Context().Done()
		close(cut)
	})}
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, server, listener, 10*time.Millisecond) }()
	_, err = http.Get("http://" + listener.Addr().String())
	require.Error(t, err)
	require.NoError(t, <-ended)
	<-cut
}

func TestPanics(t *testing.T) {
	t.Parallel()
	router := gin.New()
	router.Use(recovery)
	router.GET("/before", func(*gin.Context) { panic("secret") })
	router.GET("/within", func(c *gin.Context) {
		c.String(200, "half")
		c.Writer.Flush()
		panic("secret")
	})
	server := httptest.NewServer(router)
	defer server.Close()
	a := &app{url: server.URL}

	got := a.send(t, "GET", "/before", "", "")
	got.wantError(t, 500, "api_error", nil, "internal_error")
	require.NotContains(t, got.body, "secret")

	half, err := io.ReadAll(a.open(t, a.request(t, "GET", "/within", "", nil)).Body)
	require.Equal(t, "half", string(half))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}
