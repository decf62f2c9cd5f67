package ginlimit_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/redisclient"
	"github.com/gin-tiers/ratelimit/tiers"
)

// What the examples share: a service's callers, its tier file, and a client.

// resolver is that of a service whose auth middleware sets both.
var resolver = ginlimit.FromContext("user_id", "tier")

// signIn stands for an auth middleware: callers say in headers who they are.
func signIn(c *gin.Context) {
	c.Set("user_id", c.GetHeader("User"))
	c.Set("tier", c.GetHeader("Tier"))
	c.Set("org_id", c.GetHeader("Org"))
}

// loadTiers stands for tiers.LoadFile with its error handled.
func loadTiers(file string) *tiers.Store {
	s, err := tiers.Load(strings.NewReader(file))
	if err != nil {
		panic(err)
	}
	return s
}

// redisThatIsDown stands for the client of a server that does not answer.
func redisThatIsDown() redis.UniversalClient {
	rdb, err := redisclient.New("redis://localhost:6379")
	if err != nil {
		panic(err)
	}
	_ = rdb.Close() // so that it fails at once
	return rdb
}

func post(h http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	return send(h, http.MethodPost, path, headers)
}

func get(h http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	return send(h, http.MethodGet, path, headers)
}

// send sends a request with these headers, each a name and a value.
func send(h http.Handler, method, path string, headers []string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// answer is the status of an answer and, where a limiter has given it, its code and its scope.
func answer(w *httptest.ResponseRecorder) string {
	var body struct {
		Error struct{ Code string }
		Scope string
	}
	_ = json.Unmarshal(w.Body.Bytes(), &body) // a handler's answer has neither
	return strings.TrimSpace(fmt.Sprint(w.Code, " ", body.Error.Code, " ", body.Scope))
}
