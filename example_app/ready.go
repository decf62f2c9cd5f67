package main

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit"
)

// failurePolicy is what FAILURE_POLICY names.
type failurePolicy string

const (
	failClosed failurePolicy = "closed"
	failOpen   failurePolicy = "open"
	failLocal  failurePolicy = "local"
)

// option is the policy as the limiter takes it.
func (p failurePolicy) option() ginlimit.Option {
	switch p {
	case failOpen:
		return ginlimit.WithFailurePolicy(ginlimit.FailOpen())
	case failLocal:
		return ginlimit.WithFailurePolicy(ginlimit.FailLocal(ginlimit.NewMemoryLimiter()))
	}
	return ginlimit.WithFailurePolicy(ginlimit.FailClosed())
}

// showReadiness answers GET /readyz: 200 where limited requests are decided now, and by what, else 503. A
// Redis that does not answer makes the service unready only if the policy refuses what Redis cannot decide.
func showReadiness(limiter *ginlimit.Limiter, cfg config) gin.HandlerFunc {
	return func(c *gin.Context) {
		c.Header("Cache-Control", "no-store")
		decidedBy := "redis"
		switch _, err := limiter.Peek(c.Request.Context(), "readyz", 1, time.Minute); {
		case limiter.Disabled():
			decidedBy = "kill_switch"
		case len(cfg.redisURLs) == 0:
			decidedBy = "memory"
		case err == nil:
		case cfg.failurePolicy == failClosed:
			c.Header("Retry-After", "1")
			c.JSON(http.StatusServiceUnavailable, gin.H{"status": "not_ready", "decided_by": nil})
			return
		default:
			decidedBy = "fail_" + string(cfg.failurePolicy)
		}
		c.JSON(http.StatusOK, gin.H{"status": "ready", "decided_by": decidedBy})
	}
}
