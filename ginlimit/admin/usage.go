package admin

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
	"github.com/gin-tiers/ratelimit/tiers"
)

// maxUserID bounds the id in a query, in bytes.
const maxUserID = 4 << 10

func (r *routes) showUsage(c *gin.Context) {
	q, ok := r.query(c, "user", "tier")
	if !ok {
		return
	}
	table := r.tiers.Store()
	tier := table.Fallback()
	if name := q.Get("tier"); name != "" {
		tier = tiers.Tier(name)
	}
	if known := table.Tiers(); !slices.Contains(known, tier) {
		invalid(c, "tier", fmt.Sprintf("There is no such tier: want one of %q.", known))
		return
	}
	subject := ginlimit.Subject{UserID: q.Get("user"), Tier: tier}
	decisions, err := r.limiter.Usage(c.Request.Context(), subject.UserID, r.limiter.LimitsOf(table, subject))
	if err != nil {
		unavailable(c, "admin: usage cannot be read", err)
		return
	}
	c.JSON(http.StatusOK, NewReport(subject, decisions))
}

// resetReport is the answer to DELETE /usage.
type resetReport struct {
	Object  string   `json:"object"`
	User    string   `json:"user"`
	Windows []string `json:"windows"`
}

func (r *routes) resetUsage(c *gin.Context) {
	q, ok := r.query(c, "user", "window")
	if !ok {
		return
	}
	windows := []time.Duration{budget.Minute, budget.Hour, budget.Day, budget.Month}
	if names, given := q["window"]; given {
		windows = nil
		for _, name := range names {
			window, ok := parseWindow(name)
			if !ok {
				invalid(c, "window", "A window is minute, hour, day, month or a whole number of seconds above 0.")
				return
			}
			if !slices.Contains(windows, window) {
				windows = append(windows, window)
			}
		}
	}
	report := resetReport{Object: "usage.reset", User: q.Get("user")}
	for _, window := range windows {
		report.Windows = append(report.Windows, budget.Dimension{Window: window}.String())
	}
	if err := r.limiter.Reset(c.Request.Context(), report.User, windows...); err != nil {
		unavailable(c, "admin: usage cannot be reset", err)
		return
	}
	slog.WarnContext(c.Request.Context(), "admin: usage was reset",
		"user", report.User, "windows", report.Windows, "by", r.actor(c))
	c.JSON(http.StatusOK, report)
}

// parseWindow reads a window's name or its seconds.
func parseWindow(text string) (time.Duration, bool) {
	for _, window := range []time.Duration{budget.Minute, budget.Hour, budget.Day, budget.Month} {
		if text == (budget.Dimension{Window: window}).String() {
			return window, true
		}
	}
	seconds, err := strconv.ParseInt(text, 10, 32)
	return time.Duration(seconds) * time.Second, err == nil && seconds > 0
}
