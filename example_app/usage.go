package main

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"

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

// usageBudget is what a budget still has for its user: requests or tokens, or money in currency units.
type usageBudget struct {
	Window     string      `json:"window"`
	Limit      json.Number `json:"limit"`
	Used       json.Number `json:"used"`
	Remaining  json.Number `json:"remaining"`
	RetryAfter int         `json:"retry_after"` // seconds; 0 while there is room
}

// newUsageReport shows every budget that was looked at. No number is negative, also after a limit was
// lowered.
func newUsageReport(subject ginlimit.Subject, decisions []ginlimit.Decision) usageReport {
	report := usageReport{"usage", subject.UserID, subject.Tier, []usageBudget{}}
	for _, d := range decisions {
		report.Budgets = append(report.Budgets, newUsageBudget(d))
	}
	return report
}

func newUsageBudget(d ginlimit.Decision) usageBudget {
	return usageBudget{
		Window: d.Name(), RetryAfter: d.RetryAfterSeconds(),
		Limit: amount(d, d.Limit), Used: amount(d, d.Limit-d.Remaining), Remaining: amount(d, d.Remaining),
	}
}

// amount is a number of what a decision is about. Money is in millionths there.
func amount(d ginlimit.Decision, n int) json.Number {
	if d.Budget == "spend" {
		return json.Number(tiers.Money(n).String())
	}
	return json.Number(strconv.Itoa(n))
}

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
		report := newUsageReport(subject, decisions)
		report.Budgets = append(report.Budgets, upstreamBudgets(shared)...)
		c.JSON(http.StatusOK, report)
	}
}
