// Package budget has the types that limiters and stores share: what is counted (Dimension), what a request
// wants of it (Claim), the decision (Verdict), the keys, and the Store that decides.
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
	Concurrent // requests in progress
	Open       // whether a provider accepts requests at all
)

var units = [...]string{"", "tokens", "spend", "concurrent", "open"}

// String is the unit's name in keys, headers and metrics; "" for requests.
func (u Unit) String() string { return units[u] }

// UnitOf is the unit with this name; Requests if there is none.
func UnitOf(name string) Unit { return Unit(max(0, slices.Index(units[:], name))) }

// Form is how a store stores a dimension.
type Form uint8

const (
	Log   Form = iota // an exact window of requests
	Sum               // a bounded window: late by less than a sixtieth of it, never early
	Lease             // requests in progress, each for as long as its lease is renewed
	Gate              // open, or closed for a time; nothing is taken from it
)

// String is the form's name, as scripts know it.
func (f Form) String() string { return [...]string{"log", "sum", "lease", "gate"}[f] }

// Dimension is what a budget counts, in any span of a window's length. It is comparable.
type Dimension struct {
	Window  time.Duration // 0 for Concurrent
	Unit    Unit
	Bounded bool // for requests: a Sum instead of a Log
}

// Form is how stores store the dimension.
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

// String is the dimension's name in headers, bodies and metrics: "minute", "hour", "day", "month", or for any
// other window its seconds ("90s"); "tokens-minute", "spend-day"; "concurrent".
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

// suffix is the last part of the dimension's keys. It shows the form, so that no two forms share a key.
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

// NoLimit is the limit of a Lease that is held but not limited.
const NoLimit = -1

// Dimensions says what a mount has switched on beside exact windows of requests.
type Dimensions struct {
	Usage      bool // tokens and spend
	Concurrent bool
	Bounded    bool // windows of requests above the shortest are a Sum
}

// Of returns the budgets of a tier: requests, tokens and spend, each shortest window first, and then requests
// in progress. An unlimited number is not a budget, and neither is an optional number that is 0. A required
// number that is 0 admits nothing; only the zero Store has that.
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
