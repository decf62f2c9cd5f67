package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// deadlines records the read deadlines that a connection is given: nobody waits for a real one.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.set = append(d.set, t)
	return nil
}

func TestBodiesHaveTheirTime(t *testing.T) {
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	start := time.Now()
	handler := boundBodies(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		require.Len(t, w.set, 1, "it begins before the handler, which may never read")
		require.WithinRange(t, w.set[0], start.Add(bodyTime), time.Now().Add(bodyTime))
		_, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.Len(t, w.set, 2, "it ends with the body: the answer may take longer")
		require.True(t, w.set[1].IsZero())
	}))
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}")))
	require.Len(t, w.set, 2, "the handler ran")
}

// R19: a large body has more time, as it arrives; a body of trickles has not.
func TestLargeBodiesHaveMoreTime(t *testing.T) {
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	start := time.Now()
	boundBodies(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		for range 10 {
			_, _ = io.ReadFull(r.Body, make([]byte, 1))
		}
		require.Len(t, w.set, 1, "some bytes earn nothing")
		_, _ = io.ReadFull(r.Body, make([]byte, defaultMaxBody-10))
		last := w.set[len(w.set)-1]
		require.WithinRange(t, last, start.Add(bodyTime+512*time.Second), time.Now().Add(bodyTime+512*time.Second))
	})).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", &zeros{}))
	require.Len(t, w.set, 2, "the handler ran")
}

func TestNoBodyHasNoDeadline(t *testing.T) {
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	boundBodies(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	require.Empty(t, w.set)
}

// R27: a body that was read whole has a length, however its caller sent it.
func TestForwardedBodyHasALength(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 1)
	a, _ := provider(t, func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		seen <- fmt.Sprint(r.ContentLength, " ", r.TransferEncoding, " ", r.Trailer, " ", string(body), " ", err)
	})
	for name, row := range map[string]struct{ head, body, want string }{
		"chunked": {"Transfer-Encoding: chunked\r\n", "3\r\n{\"a\r\n4\r\n\":1}\r\n0\r\n\r\n",
			`7 [] map[] {"a":1} <nil>`},
		"chunked with a trailer": {"Transfer-Encoding: chunked\r\nTrailer: X-T\r\n",
			"2\r\n{}\r\n0\r\nX-T: 1\r\n\r\n", `2 [] map[] {} <nil>`},
		"chunked and empty": {"Transfer-Encoding: chunked\r\n", "0\r\n\r\n", `0 [] map[]  <nil>`},
		"with a length":     {"Content-Length: 2\r\n", "{}", `2 [] map[] {} <nil>`},
		"none":              {"", "", `0 [] map[]  <nil>`},
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(a.url, "http://"))
		require.NoError(t, err)
		defer conn.Close()
		fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+
			"Authorization: Bearer %s\r\n%s\r\n%s", ownKey, row.head, row.body)
		require.Equal(t, row.want, <-seen, name)
		_, _ = io.Copy(io.Discard, conn)
	}
}

// R19: images travel in the body, so it may be large; how large is a setting.
func TestLargeBodies(t *testing.T) {
	t.Parallel()
	seen := make(chan int64, 1)
	p := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		seen <- n
	}))
	t.Cleanup(p.Close)
	settings := func(more string) env {
		return env{"API_KEYS": ownKey + "=me:pro", "UPSTREAM_BASE_URL": p.URL, "MAX_BODY_BYTES": more}
	}
	for _, row := range []struct {
		setting string
		most    int64
	}{{"", 33_554_432}, {"1398269", 1_398_269}, {"10", 10}} {
		a := start(t, settings(row.setting))
		for _, announced := range []bool{true, false} {
			send := func(size int64) answer {
				req := a.request(t, "POST", "/v1/chat/completions", ownKey, io.LimitReader(&zeros{}, size))
				req.ContentLength = -1
				if announced {
					req.ContentLength = size
				}
				return read(t, a.open(t, req))
			}
			for _, size := range []int64{row.most, min(row.most, 1_398_269)} {
				require.Equal(t, 200, send(size).status)
				require.Equal(t, size, <-seen)
			}
			got := send(row.most + 1)
			got.wantError(t, 413, "invalid_request_error", nil, "request_too_large")
			require.Contains(t, got.body, fmt.Sprintf("larger than %d bytes", row.most))
		}
	}
	require.Empty(t, seen)
}
