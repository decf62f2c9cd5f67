package openai_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit/openai"
)

// Through a proxy, everything arrives, also behind early hints: status, header, body, trailer.
func TestMeterPassesEverythingOn(t *testing.T) {
	t.Parallel()
	const answer = `{"usage":{"prompt_tokens":12,"completion_tokens":34}}`
	address, words := gateway(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</x>")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Request-Id", "req_1")
		w.Header().Set("Trailer", "X-Checksum")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, answer)
		w.Header().Set("X-Checksum", "abc")
	})
	res, err := http.Post(address+"/v1/x", "application/json", strings.NewReader(askChat))
	require.NoError(t, err)
	require.Equal(t, answer, readAll(t, res.Body))
	require.Equal(t, http.StatusCreated, res.StatusCode)
	require.Equal(t, "req_1", res.Header.Get("X-Request-Id"))
	require.Equal(t, "abc", res.Trailer.Get("X-Checksum"))
	require.Equal(t, settled(12, 34), <-words)
}

// A provider that sends a whole stream at once declares a length, which is too long when a chunk is taken
// out.
func TestMeterCorrectsContentLength(t *testing.T) {
	t.Parallel()
	stream := chatStream(usageChunk)
	address, words := gateway(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Content-Length", fmt.Sprint(len(stream)))
		_, _ = io.WriteString(w, stream)
	})
	handled, handledWords := serve(t, func(c *gin.Context) {
		c.Header("Content-Type", "text/event-stream")
		c.Header("Content-Length", fmt.Sprint(len(stream)))
		_, _ = c.Writer.WriteString(stream)
	})
	res, err := http.Post(handled, "application/json", strings.NewReader(askStreamOnly))
	require.NoError(t, err)
	require.Equal(t, chatStream(""), readAll(t, res.Body))
	require.Equal(t, settled(12, 34), <-handledWords)
	for body, want := range map[string]string{askStreamOnly: chatStream(""), askStream: stream} {
		res, err := http.Post(address, "application/json", strings.NewReader(body))
		require.NoError(t, err)
		require.Equal(t, want, readAll(t, res.Body))
		require.Equal(t, settled(12, 34), <-words)
		if body == askStream {
			require.EqualValues(t, len(stream), res.ContentLength)
		}
	}
}

// An event is on its way as soon as it is complete.
func TestMeterPassesEventsOnAtOnce(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	address, words := gateway(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for n := range 3 {
			_, _ = fmt.Fprintf(w, "data: {\"n\":%d}\n\n", n)
			w.(http.Flusher).Flush()
			<-next
		}
		_, _ = io.WriteString(w, usageChunk)
	})
	res, err := http.Post(address, "application/json", strings.NewReader(askStreamOnly))
	require.NoError(t, err)
	lines := bufio.NewReader(res.Body)
	for n := range 3 {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("data: {\"n\":%d}\n", n), line)
		_, err = lines.ReadString('\n')
		require.NoError(t, err)
		next <- struct{}{}
	}
	require.Empty(t, readAll(t, lines))
	require.Equal(t, settled(12, 34), <-words)
}

// What Gin's writer can do, this one can.
func TestMeterKeepsTheWriter(t *testing.T) {
	t.Parallel()
	address, words := serve(t, func(c *gin.Context) {
		require.False(t, c.Writer.Written())
		require.NoError(t, http.NewResponseController(c.Writer).SetWriteDeadline(time.Now().Add(time.Minute)))
		require.NotNil(t, c.Writer.CloseNotify())
		c.Header("Content-Type", "text/event-stream")
		n, err := io.Copy(c.Writer, io.LimitReader(strings.NewReader(usageChunk), 10))
		require.NoError(t, err)
		require.EqualValues(t, 10, n)
		require.True(t, c.Writer.Written())
		require.NoError(t, http.NewResponseController(c.Writer).Flush())
		_, err = c.Writer.WriteString(usageChunk[10:])
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, c.Writer.Status())
	})
	res, err := http.Post(address, "application/json", strings.NewReader(askStreamOnly))
	require.NoError(t, err)
	require.Empty(t, readAll(t, res.Body))
	require.Equal(t, settled(12, 34), <-words)

	req, err := http.NewRequest(http.MethodHead, address, nil)
	require.NoError(t, err)
	res, err = http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.Equal(t, "text/event-stream", res.Header.Get("Content-Type"))
	<-words
}

// A connection that a handler takes over is out of sight.
func TestMeterOfHijackedConnections(t *testing.T) {
	t.Parallel()
	address, words := serve(t, func(c *gin.Context) {
		conn, _, err := c.Writer.Hijack()
		require.NoError(t, err)
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n\r\nhello")
		_ = conn.Close()
	})
	conn, err := net.Dial("tcp", strings.TrimPrefix(address, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(askChat),
		askChat)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(readAll(t, conn), "hello"))
	require.Equal(t, word{}, <-words)
}

// Two Meters on one request, one after the other or by Gin's HandleContext: the usage is settled once, and
// the chunk that nobody asked for does not reach the client.
func TestMeterTwice(t *testing.T) {
	t.Parallel()
	dear := openai.WithPrices(map[string]openai.Price{"": {Input: 5 * million, Output: 5 * million}})
	write := func(c *gin.Context) {
		require.Equal(t, 1, strings.Count(readAll(t, c.Request.Body), "include_usage"))
		c.Header("Content-Type", "text/event-stream")
		_, _ = c.Writer.WriteString(chatStream(usageChunk))
	}
	var got word
	router := gin.New()
	router.Use(limited(), witness(func(w word) { got = w }), openai.Meter(dear))
	router.POST("/stacked", openai.Meter(prices), write)
	router.POST("/plain", write)
	router.POST("/rewritten", func(c *gin.Context) {
		c.Request.URL.Path = "/plain"
		router.HandleContext(c)
	})
	for path, want := range map[string]int64{"/stacked": 34_012, "/plain": 230, "/rewritten": 230} {
		got = word{}
		w := newRecorder()
		router.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(askStreamOnly)))
		require.Equal(t, chatStream(""), w.Body.String(), path)
		require.Equal(t, 46, got.Tokens, path)
		require.EqualValues(t, want, got.Spend, path)
	}
}

// Retrieving an answer does not charge it again.
func TestMeterOfStoredAnswers(t *testing.T) {
	t.Parallel()
	address, words := serve(t, func(c *gin.Context) { c.String(200, `{"usage":{"total_tokens":9}}`) })
	for path, want := range map[string]word{
		"/v1/responses/resp_1": {}, "/v1/chat/completions/c_1": {}, "/v1/events": settled(9, 0),
	} {
		res, err := http.Get(address + path)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, want, <-words, path)
	}
}

// A body above the bound is unknown to the Meter, and handlers still get all of it.
func TestMeterOfLargeBodies(t *testing.T) {
	t.Parallel()
	body := `{"messages":[],"stream":true,"x":"` + strings.Repeat("x", 1000) + `"}`
	got := through(t, body, "text/event-stream", []string{chatStream(usageChunk)}, openai.WithMaxBody(100))
	require.Equal(t, body, got.forwarded)
	require.Equal(t, chatStream(usageChunk), got.Body.String())
	require.Equal(t, settled(12, 34), got.word)
}
