// Package budget holds the words that limiters and stores share: what is counted (Dimension), one
// owner's part in it (Claim), the answer (Verdict), the keys, and the Store that decides.
package budget

import (
	"cmp"
	"strconv"
	"time"

	"github.com/gin-tiers/ratelimit/tiers"
)

// The windows that tiers have numbers for.
const (
	Minute = time.Minute
	Hour   = time.Hour
	Day    = 24 * time.Hour
	Month  = 30 * Day // any 30 days
)

// Dimension is what a budget counts: requests in any span of a window's length. It is comparable.
type Dimension struct {
	Window time.Duration
}

// String is the dimension's name in headers, bodies and metrics: "minute", "hour", "day", "month", or
// the window's seconds ("90s") where it is none of these.
func (d Dimension) String() string {
	switch d.Window {
	case Minute:
		return "minute"
	case Hour:
		return "hour"
	case Day:
		return "day"
	case Month:
		return "month"
	}
	return strconv.FormatInt(d.seconds(), 10) + "s"
}

// form is the last part of the dimension's keys. A number is an exact log of requests.
func (d Dimension) form() string { return strconv.FormatInt(d.seconds(), 10) }

func (d Dimension) seconds() int64 { return int64(d.Window / time.Second) }

// Budget is a dimension with a limit.
type Budget struct {
	Dimension
	Limit int // 0 or less admits nothing
}

// Of returns the budgets of requests that a tier has, shortest window first. A number that is unlimited
// is no budget: it is not asked for. So is an optional one that is 0; a required one that is 0, which no
// table has but the zero Store, admits nothing.
func Of(l tiers.Limits) []Budget {
	var budgets []Budget
	for _, b := range []Budget{
		{Dimension{Minute}, l.PerMinute},
		{Dimension{Hour}, cmp.Or(l.PerHour, tiers.Unlimited)},
		{Dimension{Day}, l.PerDay},
		{Dimension{Month}, cmp.Or(l.PerMonth, tiers.Unlimited)},
	} {
		if b.Limit != tiers.Unlimited {
			budgets = append(budgets, b)
		}
	}
	return budgets
}
