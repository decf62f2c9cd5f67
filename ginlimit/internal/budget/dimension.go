// Package budget holds the words that limiters and stores share: what is counted (Dimension), one
// owner's part in it (Claim), the answer (Verdict), the keys, and the Store that decides.
package budget

import (
	"slices"
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

// Unit is what a budget counts, in the order in which budgets are decided. The zero value is requests.
type Unit uint8

const (
	Requests Unit = iota
	Tokens
	Spend      // millionths of the operator's currency unit
	Concurrent // requests under way
	Open       // whether a provider takes requests at all
)

var units = [...]string{"", "tokens", "spend", "concurrent", "open"}

// String is the unit's name in keys, headers and metrics; "" of requests.
func (u Unit) String() string { return units[u] }

// UnitOf is the unit of a name; Requests where it is none.
func UnitOf(name string) Unit { return Unit(max(0, slices.Index(units[:], name))) }

// Form is how a store keeps a dimension.
type Form uint8

const (
	Log   Form = iota // an exact window of requests
	Sum               // a bounded window: late by less than a sixtieth of it, never early
	Lease             // requests under way, each for as long as its lease is renewed
	Gate              // closed for a time, or open; nothing is taken of it
)

// String is the form's name, as scripts know it.
func (f Form) String() string { return [...]string{"log", "sum", "lease", "gate"}[f] }

// Dimension is what a budget counts, in any span of a window's length. It is comparable.
type Dimension struct {
	Window  time.Duration // 0 of Concurrent
	Unit    Unit
	Bounded bool // of requests: a Sum in place of a Log
}

// Form is how stores keep the dimension.
func (d Dimension) Form() Form {
	switch {
	case d.Unit == Concurrent:
		return Lease
	case d.Unit == Open:
		return Gate
	case d.Unit == Requests && !d.Bounded:
		return Log
	}
	return Sum
}

// String is the dimension's name in headers, bodies and metrics: "minute", "hour", "day", "month", or
// the window's seconds ("90s") where it is none of these; "tokens-minute", "spend-day"; "concurrent".
func (d Dimension) String() string {
	switch d.Unit {
	case Requests:
		return d.window()
	case Concurrent, Open:
		return d.Unit.String()
	}
	return d.Unit.String() + "-" + d.window()
}

func (d Dimension) window() string {
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

// suffix is the last part of the dimension's keys. It tells the form, so that no two meet.
func (d Dimension) suffix() string {
	unit := d.Unit.String()
	switch d.Form() {
	case Log:
		return strconv.FormatInt(d.seconds(), 10)
	case Lease:
		return "leases"
	case Gate:
		return "closed"
	}
	if d.Unit == Requests {
		unit = "requests"
	}
	return strconv.FormatInt(d.seconds(), 10) + ":" + unit
}

func (d Dimension) seconds() int64 { return int64(d.Window / time.Second) }

// Budget is a dimension with a limit.
type Budget struct {
	Dimension
	Limit int // 0 or less admits nothing, but see NoLimit
}

// NoLimit is the limit of a Lease that is held without being counted.
const NoLimit = -1

// Dimensions are what a mount has switched on beside exact windows of requests.
type Dimensions struct {
	Usage      bool // tokens and spend
	Concurrent bool
	Bounded    bool // windows of requests above the shortest are a Sum
}

// Of returns the budgets that a tier has: requests, tokens and spend, each shortest window first, and then
// requests under way. A number that is unlimited is no budget: it is not asked for. So is an optional one
// that is 0; a required one that is 0, which no table has but the zero Store, admits nothing.
func Of(l tiers.Limits, on Dimensions) []Budget {
	var budgets []Budget
	add := func(unit Unit, window time.Duration, limit int) {
		if limit != tiers.Unlimited {
			bounded := unit == Requests && on.Bounded && len(budgets) > 0
			budgets = append(budgets, Budget{Dimension{window, unit, bounded}, limit})
		}
	}
	optional := func(unit Unit, window time.Duration, limit int) {
		if limit != 0 {
			add(unit, window, limit)
		}
	}
	add(Requests, Minute, l.PerMinute)
	optional(Requests, Hour, l.PerHour)
	add(Requests, Day, l.PerDay)
	optional(Requests, Month, l.PerMonth)
	if on.Usage {
		optional(Tokens, Minute, l.TokensPerMinute)
		optional(Tokens, Day, l.TokensPerDay)
		optional(Tokens, Month, l.TokensPerMonth)
		optional(Spend, Day, int(l.SpendPerDay))
		optional(Spend, Month, int(l.SpendPerMonth))
	}
	if on.Concurrent {
		optional(Concurrent, 0, l.Concurrent)
	}
	return budgets
}

// DimensionsOf are all dimensions of a window.
func DimensionsOf(window time.Duration) []Dimension {
	return []Dimension{
		{Window: window}, {Window: window, Bounded: true},
		{Window: window, Unit: Tokens}, {Window: window, Unit: Spend},
	}
}
