package main

import (
	"io"
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

func TestNoBodyHasNoDeadline(t *testing.T) {
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	boundBodies(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	require.Empty(t, w.set)
}
