package main

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/tiers"
)

var errUsageUnavailable = &apiError{http.StatusServiceUnavailable, "The usage cannot be read now. Try again shortly.",
	"api_error", nil, new("rate_limiter_unavailable")}

// usageReport is the answer to GET /v1/usage.
type usageReport struct {
	Object  string     `json:"object"`
	User    string     `json:"user"`
	Tier    tiers.Tier `json:"tier"`
	Budgets []budget   `json:"budgets"`
}

// budget is what a window still has for its user.
type budget struct {
	Window     string `json:"window"`
	Limit      int    `json:"limit"`
	Used       int    `json:"used"`
	Remaining  int    `json:"remaining"`
	RetryAfter int    `json:"retry_after"` // seconds; 0 while there is room
}

// showUsage answers GET /v1/usage with the caller's budgets. It only peeks, so asking costs nothing.
func showUsage(limiter *ginlimit.Limiter, resolver ginlimit.TierResolver, table *tiers.Store) gin.HandlerFunc {
	return func(c *gin.Context) {
		ctx := c.Request.Context()
		subject, err := resolver.ResolveTier(c)
		peek := func(window string, limit int, length time.Duration) budget {
			var d ginlimit.Decision
			if err == nil {
				d, err = limiter.Peek(ctx, subject.UserID, limit, length)
			}
			return budget{window, limit, limit - d.Remaining, d.Remaining, d.RetryAfterSeconds()}
		}
		limits := table.Lookup(subject.Tier)
		report := usageReport{"usage", subject.UserID, subject.Tier, []budget{
			peek("minute", limits.PerMinute, time.Minute),
			peek("day", limits.PerDay, 24*time.Hour),
		}}
		if err != nil {
			if ctx.Err() == nil { // otherwise the client has left, and nothing failed
				slog.Error("usage cannot be read", "error", err)
			}
			c.Header("Retry-After", "1")
			abort(c, errUsageUnavailable)
			return
		}
		c.Header("Cache-Control", "no-store")
		c.JSON(http.StatusOK, report)
	}
}
