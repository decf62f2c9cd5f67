package openai_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit/openai"
)

// gateway is a reverse proxy behind a Meter, on a socket of its own. What the Meter says goes to words.
func gateway(t testing.TB, provider http.HandlerFunc) (address string, words chan word) {
	t.Helper()
	upstream := httptest.NewServer(provider)
	t.Cleanup(upstream.Close)
	target, err := url.Parse(upstream.URL)
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(502) },
	}
	return serve(t, func(c *gin.Context) { proxy.ServeHTTP(c.Writer, c.Request) })
}

func serve(t testing.TB, handler gin.HandlerFunc) (address string, words chan word) {
	t.Helper()
	words = make(chan word, 1000)
	router := gin.New()
	router.Use(silentRecovery, limited(), witness(func(w word) { words <- w }), openai.Meter(prices))
	router.Any("/*path", handler)
	server := httptest.NewServer(router)
	t.Cleanup(server.Close)
	return server.URL, words
}

func silentRecovery(c *gin.Context) {
	defer func() {
		if v := recover(); v != nil {
			c.AbortWithStatus(http.StatusInternalServerError)
		}
	}()
	c.Next()
}

// L1, Q6: a client leaves a stream: at once what was streamed is charged, a hundred times.
func TestMeterOfStreamsThatClientsLeave(t *testing.T) {
	t.Parallel()
	first, _, _ := strings.Cut(chatStream(""), `data: {"id":"c","choices":[{"delta":{},"finish`)
	left := make(chan struct{}, 1000)
	gatewayURL, words := gateway(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, first)
		w.(http.Flusher).Flush()
		<-r.Context().Done() // the proxy hangs up when its client does
		left <- struct{}{}
	})
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, gatewayURL, strings.NewReader(askStreamOnly))
		require.NoError(t, err)
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		_, err = io.ReadFull(res.Body, make([]byte, len(first)))
		require.NoError(t, err)
		cancel()
		require.Equal(t, settled(5, 5), <-words)
		<-left
	}
}

// A client that leaves before anything came: a stream is charged its prompt, of anything else the
// reservation stands, for the provider may write it all.
func TestMeterOfClientsThatLeaveAtOnce(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]word{askStreamOnly: settled(5, 0), askChat: {}, "?": {}} {
		reached := make(chan struct{})
		gatewayURL, words := gateway(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			close(reached)
			<-r.Context().Done()
		})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-reached; cancel() }()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, gatewayURL, strings.NewReader(body))
		require.NoError(t, err)
		_, err = http.DefaultClient.Do(req)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, want, <-words, body)
	}
}

// L1: a provider that breaks off makes the proxy panic.
func TestMeterOfProvidersThatBreakOff(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		body, contentType, sent string
		want                    word
	}{
		{askStreamOnly, "text/event-stream", chatStream("")[:len(chatStream(""))-20], settled(5, 5)},
		{askClaude, "text/event-stream", until(claudeStream, "event: message_delta"), settled(12, 5)},
		{askChat, "application/json", `{"choices":[{"message":{"content":"Hello, world!"`, settled(5, 4)},
	} {
		gatewayURL, words := gateway(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", row.contentType)
			_, _ = io.WriteString(w, row.sent)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		})
		res, err := http.Post(gatewayURL, "application/json", strings.NewReader(row.body))
		require.NoError(t, err)
		got, _ := io.ReadAll(res.Body)
		require.Equal(t, row.sent, string(got))
		require.Equal(t, row.want, <-words)
	}
	gatewayURL, words := gateway(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	res, err := http.Post(gatewayURL, "application/json", strings.NewReader(askChat))
	require.NoError(t, err)
	require.Equal(t, http.StatusBadGateway, res.StatusCode)
	require.Equal(t, word{said: true}, <-words)
}

// A handler that panics.
func TestMeterOfPanics(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		body    string
		handler gin.HandlerFunc
		want    word
		status  int
	}{
		"at once":            {askChat, func(*gin.Context) { panic("at once") }, word{}, 500},
		"a stream, at once":  {askStreamOnly, func(*gin.Context) { panic("at once") }, settled(5, 0), 500},
		"after an error":     {askChat, answerAndPanic(400, "no"), word{said: true}, 400},
		"within an answer":   {askChat, answerAndPanic(200, "Hello, world!"), settled(5, 4), 200},
		"after the usage":    {askChat, answerAndPanic(200, `{"usage":{"total_tokens":9}}`), settled(9, 0), 200},
		"after a time limit": {askChat, func(c *gin.Context) { c.Status(504) }, word{said: true}, 504},
	} {
		address, words := serve(t, row.handler)
		res, err := http.Post(address, "application/json", strings.NewReader(row.body))
		require.NoError(t, err)
		require.Equal(t, row.status, res.StatusCode, name)
		require.Equal(t, row.want, <-words, name)
	}
}

func answerAndPanic(status int, body string) gin.HandlerFunc {
	return func(c *gin.Context) {
		c.String(status, body)
		panic("later")
	}
}

// A handler may end the context that it put in place of the request's: that is not the client leaving.
func TestMeterOfContextsThatHandlersEnd(t *testing.T) {
	t.Parallel()
	got := ask(t, askChat, func(c *gin.Context) {
		ctx, cancel := context.WithCancel(c.Request.Context())
		cancel()
		c.Request = c.Request.WithContext(ctx)
		c.Status(http.StatusGatewayTimeout)
	})
	require.Equal(t, word{said: true}, got.word)
}

// A body that cannot be read is the handler's to answer.
func TestMeterOfUnreadableBodies(t *testing.T) {
	t.Parallel()
	router := gin.New()
	var got word
	router.Use(limited(), witness(func(w word) { got = w }), func(c *gin.Context) {
		c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, 10)
	}, openai.Meter())
	router.POST("/", func(c *gin.Context) {
		_, err := io.ReadAll(c.Request.Body)
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			c.Status(http.StatusRequestEntityTooLarge)
		}
	})
	w := newRecorder()
	router.ServeHTTP(w, contextOf("/", askChat).Request)
	require.Equal(t, http.StatusRequestEntityTooLarge, w.Code)
	require.Equal(t, word{said: true}, got)
}
