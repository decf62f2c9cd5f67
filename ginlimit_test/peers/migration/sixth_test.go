package migration_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// rejection is what a user sees of the sixth request in a minute, and what stands in Redis then.
type rejection struct {
	answer  string   // the status, and the body: its text, JSON or nothing
	headers []string // those of limits, sorted, without X-RateLimit-
	keys    []string // sorted
}

// newRouter serves / to alice of the tier free, who is signed in by whatever stands before.
func newRouter() *gin.Engine {
	gin.SetMode(gin.TestMode)
	router := gin.New()
	router.Use(func(c *gin.Context) {
		c.Set("user_id", "alice")
		c.Set("tier", "free")
	})
	return router
}

func serveRoot(router *gin.Engine) {
	router.GET("/", func(c *gin.Context) { c.Status(http.StatusOK) })
}

func send(handler http.Handler) *httptest.ResponseRecorder {
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("X-Api-Key", "sk-alice")
	handler.ServeHTTP(w, r)
	return w
}

// limited mounts a limiter of 5 requests a minute on a router and an own Redis.
func limited(t *testing.T, mount func(*gin.Engine, *redis.Client) error) rejection {
	t.Helper()
	rdb, router := redistest.Start(t).Client(t), newRouter()
	require.NoError(t, mount(router, rdb))
	serveRoot(router)
	return sixth(t, router, rdb)
}

// sixth sends six requests, of which five pass.
func sixth(t *testing.T, handler http.Handler, rdb *redis.Client) rejection {
	t.Helper()
	for range 5 {
		require.Equal(t, http.StatusOK, send(handler).Code)
	}
	w := send(handler)
	keys, err := rdb.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	slices.Sort(keys)
	return rejection{answer: answerOf(w), headers: limitHeaders(w.Header()), keys: keys}
}

func answerOf(w *httptest.ResponseRecorder) string {
	body := strings.TrimSpace(w.Body.String())
	switch {
	case body == "":
		body = "nothing"
	case json.Valid([]byte(body)):
		body = "JSON"
	}
	return strconv.Itoa(w.Code) + " " + body
}

func limitHeaders(h http.Header) (headers []string) {
	for name, values := range h {
		short, limits := strings.CutPrefix(name, "X-Ratelimit-")
		if limits || name == "Retry-After" {
			headers = append(headers, short+": "+rounded(values[0]))
		}
	}
	slices.Sort(headers)
	return headers
}

// rounded forgets the few seconds that the test has taken since the first request, and names a moment.
func rounded(value string) string {
	seconds, err := strconv.ParseInt(value, 10, 64)
	switch {
	case err != nil:
		return value
	case seconds > time.Now().Add(-time.Hour).Unix():
		return "a Unix time"
	case 40 < seconds && seconds < 60:
		return "60"
	case 6 < seconds && seconds < 12:
		return "12"
	}
	return value
}
