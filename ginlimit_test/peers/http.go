package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
	"github.com/valyala/fasthttp"
)

// The service in front of which the limiters stand, the same for all.
const (
	userHeader = "X-User" // who calls; an authentication would find it out
	userKey    = "user_id"
	tierKey    = "tier"
	tierOfAll  = "enterprise"
)

// serve runs the service behind a limiter on a loopback port until stop is called.
func serve(l limiter, rdb redis.UniversalClient, windows []window) (addr string, stop func(), err error) {
	handlers, err := l.handlers(rdb, windows)
	if err != nil {
		return "", nil, err
	}
	srv := httptest.NewServer(newRouter(handlers))
	return srv.Listener.Addr().String(), srv.Close, nil
}

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

// get decides by a request on a connection of its own, for one goroutine: 200 is allowed, 429 is not. The
// client allocates nothing, so the allocations that are counted are the server's.
func get(client *fasthttp.HostClient) decide {
	var req fasthttp.Request
	var resp fasthttp.Response
	req.SetRequestURI("http://" + client.Addr + "/")
	return func(_ context.Context, user string) (verdict, error) {
		req.Header.Set(userHeader, user)
		if err := client.Do(&req, &resp); err != nil {
			return verdict{}, err
		}
		code := resp.StatusCode()
		if code != http.StatusOK && code != http.StatusTooManyRequests {
			return verdict{}, fmt.Errorf("status %d", code)
		}
		return verdict{allowed: code == http.StatusOK}, nil
	}
}
