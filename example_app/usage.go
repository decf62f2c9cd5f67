package main

import (
	"cmp"
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/tiers"
)

var errUsageUnavailable = &apiError{http.StatusServiceUnavailable,
	"The usage cannot be read now. Try again shortly.",
	"api_error", nil, new("rate_limiter_unavailable")}

// usageReport is the answer to GET /v1/usage.
type usageReport struct {
	Object  string        `json:"object"`
	User    string        `json:"user"`
	Tier    tiers.Tier    `json:"tier"`
	Budgets []usageBudget `json:"budgets"`
}

// usageBudget is what a budget still has for its user.
type usageBudget struct {
	Window     string `json:"window"`
	Limit      int    `json:"limit"`
	Used       int    `json:"used"`
	Remaining  int    `json:"remaining"`
	RetryAfter int    `json:"retry_after"` // seconds; 0 while there is room
}

// newUsageReport shows every budget that was looked at. No number is negative, also after a limit was
// lowered.
func newUsageReport(subject ginlimit.Subject, decisions []ginlimit.Decision) usageReport {
	report := usageReport{"usage", subject.UserID, subject.Tier, []usageBudget{}}
	for _, d := range decisions {
		report.Budgets = append(report.Budgets, usageBudget{
			Window: windowName(d), Limit: d.Limit, Used: d.Limit - d.Remaining, Remaining: d.Remaining,
			RetryAfter: d.RetryAfterSeconds(),
		})
	}
	return report
}

// windowName is what the limiter's headers call the window of a decision.
func windowName(d ginlimit.Decision) string {
	names := map[time.Duration]string{
		time.Minute: "minute", time.Hour: "hour", 24 * time.Hour: "day", 30 * 24 * time.Hour: "month",
	}
	switch name := cmp.Or(names[d.Window], d.Window.String()); {
	case d.Budget == "":
		return name
	case d.Window == 0:
		return d.Budget
	default:
		return d.Budget + "-" + name
	}
}

// showUsage answers GET /v1/usage with the caller's budgets. It takes nothing, so asking costs nothing.
func showUsage(
	limiter *ginlimit.Limiter, resolver ginlimit.TierResolver, table *tiers.Store,
) gin.HandlerFunc {
	var logged logRate
	return func(c *gin.Context) {
		ctx := c.Request.Context()
		subject, err := resolver.ResolveTier(c)
		var decisions []ginlimit.Decision
		if err == nil {
			decisions, err = limiter.Usage(ctx, subject.UserID, table.Lookup(subject.Tier))
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
		c.JSON(http.StatusOK, newUsageReport(subject, decisions))
	}
}
