package admin

import (
	"encoding/json"
	"strconv"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
	"github.com/gin-tiers/ratelimit/tiers"
)

// Report is what GET /usage answers: what a user still has. A route on which users see their own budgets can
// answer it too.
type Report struct {
	Object  string     `json:"object"` // "usage"
	User    string     `json:"user"`
	Tier    tiers.Tier `json:"tier"`
	Budgets []Budget   `json:"budgets"` // never nil
}

// Budget is what one budget still has. Numbers count requests or tokens, or are money in currency units. None
// is negative.
type Budget struct {
	Scope      string      `json:"scope,omitempty"`
	Window     string      `json:"window"` // as Decision.Name says it
	Limit      json.Number `json:"limit"`
	Used       json.Number `json:"used"`
	Remaining  json.Number `json:"remaining"`
	RetryAfter int         `json:"retry_after"` // seconds; 0 while there is room
}

// NewReport returns the report of a subject's decisions from Limiter.Usage.
func NewReport(subject ginlimit.Subject, decisions []ginlimit.Decision) Report {
	report := Report{"usage", subject.UserID, subject.Tier, []Budget{}}
	for _, d := range decisions {
		report.Budgets = append(report.Budgets, NewBudget(d))
	}
	return report
}

// NewBudget returns a decision as a budget of a report.
func NewBudget(d ginlimit.Decision) Budget {
	amount := func(n int) json.Number {
		if budget.UnitOf(d.Budget) == budget.Spend {
			return json.Number(tiers.Money(n).String())
		}
		return json.Number(strconv.Itoa(n))
	}
	return Budget{
		Scope: d.Scope, Window: d.Name(),
		Limit: amount(d.Limit), Used: amount(d.Limit - d.Remaining), Remaining: amount(d.Remaining),
		RetryAfter: d.RetryAfterSeconds(),
	}
}
