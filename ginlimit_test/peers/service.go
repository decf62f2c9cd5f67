package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/valyala/fasthttp"
)

// The service in front of which the limiters stand, the same for all.
const (
	userHeader = "X-User" // who calls; an authentication would find it out
	userKey    = "user_id"
	tierKey    = "tier"
	tierOfAll  = "enterprise"
)

func newRouter(handlers []gin.HandlerFunc) *gin.Engine {
	router := gin.New()
	router.Use(func(c *gin.Context) {
		c.Set(userKey, c.GetHeader(userHeader))
		c.Set(tierKey, tierOfAll)
	})
	router.Use(handlers...)
	router.GET("/", func(c *gin.Context) { c.String(http.StatusOK, "ok") })
	return router
}

// through decides by a request without a network, for one goroutine. Request and answer are used again and
// again, so that little but the limiter is measured.
func through(router http.Handler) decide {
	r, user := must(http.NewRequest(http.MethodGet, "/", nil)), []string{""}
	r.Header[userHeader] = user
	w := &nobody{header: http.Header{}}
	return func(_ context.Context, id string) (verdict, error) {
		user[0] = id
		clear(w.header)
		router.ServeHTTP(w, r)
		return verdictOf(w.status)
	}
}

// nobody is a ResponseWriter that keeps only the status.
type nobody struct {
	header http.Header
	status int
}

func (n *nobody) Header() http.Header         { return n.header }
func (n *nobody) Write(b []byte) (int, error) { return len(b), nil }
func (n *nobody) WriteHeader(status int)      { n.status = status }

// get decides by a request on a connection of its own, for one goroutine. The client allocates nothing, so
// the allocations that are counted are the server's.
func get(client *fasthttp.HostClient) decide {
	var req fasthttp.Request
	var resp fasthttp.Response
	req.SetRequestURI("http://" + client.Addr + "/")
	return func(_ context.Context, user string) (verdict, error) {
		req.Header.Set(userHeader, user)
		if err := client.Do(&req, &resp); err != nil {
			return verdict{}, err
		}
		return verdictOf(resp.StatusCode())
	}
}

func verdictOf(status int) (verdict, error) {
	if status != http.StatusOK && status != http.StatusTooManyRequests {
		return verdict{}, fmt.Errorf("status %d", status)
	}
	return verdict{allowed: status == http.StatusOK}, nil
}
