package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const ownKey = "sk-own"

// provider starts the app in front of a provider that answers as told.
func provider(t *testing.T, answer http.HandlerFunc) (*app, *httptest.Server) {
	t.Helper()
	p := httptest.NewServer(answer)
	t.Cleanup(p.Close)
	return start(t, env{
		"API_KEYS":          ownKey + "=me:pro",
		"UPSTREAM_BASE_URL": p.URL + "/base/v1",
		"UPSTREAM_API_KEY":  "sk-upstream",
	}), p
}

func TestForwardedRequest(t *testing.T) {
	t.Parallel()
	seen := make(chan *http.Request, 1)
	a, p := provider(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		seen <- r
	})
	req := a.request(t, "POST", "/v1/chat/completions?beta=1", ownKey, strings.NewReader("any body"))
	private := []string{"Cookie", "Api-Key", "OpenAI-Organization", "X-Forwarded-For",
		"X-Forwarded-Host", "Forwarded",
		"Keep-Alive", "Te", "Upgrade", "Connection", "Expect", "Proxy-Authorization", "X-Hop",
		"X-HTTP-Method-Override"}
	for _, name := range private {
		req.Header.Set(name, "secret")
	}
	req.Header.Set("Te", "trailers")
	req.Header.Set("Expect", "100-continue")
	req.Header.Set("Connection", "Upgrade, X-Hop")
	req.Header.Set("X-Request-Tag", "mine")
	require.Equal(t, 200, read(t, a.open(t, req)).status)

	got := <-seen
	body, _ := io.ReadAll(got.Body)
	require.Equal(t, "POST /base/v1/chat/completions?beta=1 any body",
		fmt.Sprint(got.Method, " ", got.URL, " ", string(body)))
	require.Equal(t, "http://"+got.Host, p.URL)
	require.Equal(t, []string{"Bearer sk-upstream"}, got.Header["Authorization"])
	require.Equal(t, "mine", got.Header.Get("X-Request-Tag"))
	require.NotContains(t, fmt.Sprint(got.Header), "secret")
	for _, name := range private {
		require.Empty(t, got.Header.Get(name), name)
	}

	require.Equal(t, 200, a.send(t, "GET", "/v1/models", ownKey, "").status)
	require.Equal(t, "/base/v1/models", (<-seen).URL.Path)
	require.Equal(t, 200, a.send(t, "GET", "/v1%2Fmodels", ownKey, "").status)
	require.Equal(t, "/base/v1/models", (<-seen).RequestURI)
}

func TestBaseURLs(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 1)
	p := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen <- r.RequestURI
	}))
	t.Cleanup(p.Close)
	for base, want := range map[string]string{
		"":          "/models",
		"/":         "/models",
		"/v1":       "/v1/models",
		"/v1/":      "/v1/models",
		"/a%2Fb/v1": "/a%2Fb/v1/models",
	} {
		a := start(t, env{"API_KEYS": ownKey + "=me:pro", "UPSTREAM_BASE_URL": p.URL + base})
		require.Equal(t, 200, a.send(t, "GET", "/v1/models", ownKey, "").status)
		require.Equal(t, want, <-seen, base)
	}
}

func TestForwardedStream(t *testing.T) {
	t.Parallel()
	next := make(chan string)
	a, _ := provider(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		for event := range next {
			_, _ = io.WriteString(w, event)
			w.(http.Flusher).Flush()
		}
	})
	res := a.open(t, a.request(t, "POST", "/v1/chat/completions", ownKey, nil))
	require.Equal(t, "59", res.Header.Get("X-RateLimit-Remaining"))
	for _, event := range []string{"data: one\n\n", "data: two\n\n", "data: [DONE]\n\n"} {
		next <- event
		got := make([]byte, len(event))
		_, err := io.ReadFull(res.Body, got) // arrives before the next one is made
		require.NoError(t, err)
		require.Equal(t, event, string(got))
	}
	close(next)
	_, err := res.Body.Read(make([]byte, 1))
	require.Equal(t, io.EOF, err)
}

func TestProviderUnreachable(t *testing.T) {
	t.Parallel()
	a, p := provider(t, func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }) // resets
	wantUnreachable := func() {
		t.Helper()
		got := a.chat(t, ownKey, "Hi", "")
		got.wantError(t, 502, "api_error", nil, "upstream_unreachable")
		require.NotContains(t, got.body, "127.0.0.1")
		require.NotEmpty(t, got.header.Get("X-RateLimit-Remaining"))
	}
	wantUnreachable()
	p.Close()
	wantUnreachable()
}

// Half an answer must not look like a whole one.
func TestProviderBreaksOff(t *testing.T) {
	t.Parallel()
	a, _ := provider(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "data: half")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	res := a.open(t, a.request(t, "POST", "/v1/chat/completions", ownKey, nil))
	got, err := io.ReadAll(res.Body)
	require.Equal(t, "data: half", string(got))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestClientLeaves(t *testing.T) {
	t.Parallel()
	left := make(chan struct{})
	a, _ := provider(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(left)
	})
	res := a.open(t, a.request(t, "POST", "/v1/chat/completions", ownKey, nil))
	require.NoError(t, res.Body.Close())
	select {
	case <-left:
	case <-time.After(10 * time.Second):
		t.Fatal("the provider still works for a client that has left")
	}
}

func TestForwardedBodyTooLarge(t *testing.T) {
	t.Parallel()
	a, _ := provider(t, func(http.ResponseWriter, *http.Request) { t.Error("reached the provider") })
	for _, length := range []int64{100 << 20, -1} {
		req := a.request(t, "POST", "/v1/chat/completions", ownKey, io.LimitReader(&zeros{}, 100<<20))
		req.ContentLength = length
		read(t, a.open(t, req)).wantError(t, 413, "invalid_request_error", nil, "request_too_large")
	}
}

// A provider may answer with what net/http refuses to write: that must not take the app down.
func TestProviderStatusIsImpossible(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"000", "099", "600", "999"} {
		a, _ := provider(t, func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				fmt.Fprintf(conn, "HTTP/1.1 %s X\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}", status)
				conn.Close()
			}
		})
		for range 2 {
			require.Equal(t, 502, a.send(t, "GET", "/v1/models", ownKey, "").status, status)
		}
	}
}
