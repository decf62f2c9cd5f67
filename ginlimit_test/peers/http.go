package main

import (
	"context"
	"errors"
	"math"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
)

// The service in front of which the limiters stand, the same for all.
const (
	userHeader = "X-User" // who calls; an authentication would find it out
	userKey    = "user_id"
	tierKey    = "tier"
	tierOfAll  = "enterprise"
)

// serve runs the service with that middleware on a loopback port until stop is called.
func serve(l limiter, rdb redis.UniversalClient, windows []window) (addr string, stop func() error, err error) {
	chain, err := l.middleware(rdb, windows)
	if err != nil {
		return "", nil, err
	}
	router := gin.New()
	router.Use(func(c *gin.Context) {
		c.Set(userKey, c.GetHeader(userHeader))
		c.Set(tierKey, tierOfAll)
	})
	router.Use(chain...)
	router.GET("/", func(c *gin.Context) { c.String(http.StatusOK, "ok") })

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: router, ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	stop = func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err := server.Shutdown(ctx)
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}
	return listener.Addr().String(), stop, nil
}

func userOf(c *gin.Context) string { return c.GetString(userKey) }

// answer is what a careful user of a limiter without Gin middleware writes: the headers, and 429.
func answer(c *gin.Context, allowed bool, limit, remaining int, retryAfter time.Duration) {
	c.Header("X-RateLimit-Limit", strconv.Itoa(limit))
	c.Header("X-RateLimit-Remaining", strconv.Itoa(remaining))
	if !allowed {
		c.Header("Retry-After", strconv.Itoa(int(math.Ceil(retryAfter.Seconds()))))
		c.AbortWithStatusJSON(http.StatusTooManyRequests, gin.H{"error": "rate limit exceeded"})
	}
}

func unavailable(c *gin.Context) { c.AbortWithStatus(http.StatusServiceUnavailable) }
