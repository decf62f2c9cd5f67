package ginlimit_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/tiers"
)

// A client that leaves while the first request of its process is decided leaves no slot and no panic behind.
// L1.
func TestLeavingBeforeTheFirstAdmission(t *testing.T) {
	captureLogs(t)
	table, _ := plenty(t, func(l *tiers.Limits) { l.Concurrent = 3 })
	router := gin.New()
	router.Use(
		headerAuth,
		ginlimit.New(ginlimit.NewLimiter(hungScripter{}, ginlimit.WithTimeout(500*time.Millisecond)),
			resolver, ginlimit.WithTiers(table), ginlimit.WithConcurrency()),
	)
	router.GET("/", func(*gin.Context) { t.Error("admitted") })
	ctx, leave := context.WithTimeout(t.Context(), 10*time.Millisecond)
	left, cancel := context.WithCancel(t.Context())
	defer leave()
	context.AfterFunc(ctx, cancel)
	req := httptest.NewRequestWithContext(left, http.MethodGet, "/", nil)
	req.Header.Set(headerUser, "alice")
	w := httptest.NewRecorder()
	require.NotPanics(t, func() { router.ServeHTTP(w, req) })
	require.Equal(t, 499, w.Code)
}
