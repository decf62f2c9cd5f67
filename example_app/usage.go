package main

import (
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/admin"
)

var errUsageUnavailable = &apiError{http.StatusServiceUnavailable,
	"The usage cannot be read now. Try again shortly.",
	"api_error", nil, new("rate_limiter_unavailable")}

// countedAs is the id under which the middleware counts a user: one that looks like the id of an address, as
// ginlimit.ByClientIP makes them, is escaped.
func countedAs(user string) string {
	for _, like := range []string{"ip/", "ip%"} {
		if rest, ok := strings.CutPrefix(user, like); ok {
			return "ip" + url.QueryEscape(like[2:]) + rest
		}
	}
	return user
}

// showUsage answers GET /v1/usage with the caller's budgets, and what the provider's caps leave for the
// caller's tier. It takes nothing, so asking costs nothing.
func showUsage(limiter *ginlimit.Limiter, resolver ginlimit.TierResolver, cfg config) gin.HandlerFunc {
	var logged logRate
	return func(c *gin.Context) {
		ctx := c.Request.Context()
		subject, err := resolver.ResolveTier(c)
		var decisions, shared []ginlimit.Decision
		if err == nil {
			counted := ginlimit.Subject{UserID: countedAs(subject.UserID), Tier: subject.Tier}
			limits := limiter.LimitsOf(cfg.tiers.Store(), counted)
			decisions, err = limiter.Usage(ctx, counted.UserID, limits)
		}
		if err == nil && cfg.upstreamCap != nil {
			shared, err = limiter.UpstreamUsage(ctx, *cfg.upstreamCap, subject.Tier)
		}
		if err != nil {
			if ctx.Err() == nil && logged.allow() { // otherwise the client has left, and nothing failed
				slog.Error("usage cannot be read", "error", err)
			}
			c.Header("Retry-After", "1")
			abort(c, errUsageUnavailable)
			return
		}
		c.Header("Cache-Control", "no-store")
		report := admin.NewReport(subject, decisions)
		for _, d := range shared {
			b := admin.NewBudget(d)
			b.Window = "upstream-" + b.Window
			report.Budgets = append(report.Budgets, b)
		}
		c.JSON(http.StatusOK, report)
	}
}
