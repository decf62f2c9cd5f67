package main

import "time"

// The groups of rows: each is a table of its own.
const (
	groupBaseline = "baselines"
	groupOne      = "one window"
	groupTwo      = "two windows"
	groupRejected = "rejected, one window"
	groupHTTP     = "HTTP through Gin, two windows"
)

// row is a line of a table: a limiter in a situation.
type row struct {
	number  int // tells its users from those of other rows
	group   string
	limiter limiter
	auto    bool // over client.AutoPipeline()
	http    bool
	full    bool // every user has used up the window: all calls are rejected
	windows []window
}

func (r row) name() string {
	if r.auto {
		return r.limiter.name + ", AutoPipeline"
	}
	return r.limiter.name
}

func (r row) title() string { return r.group + ": " + r.name() }

// The limits that are asked for: nobody reaches the first two.
var (
	perMinute = window{600, time.Minute}
	perDay    = window{100_000, 24 * time.Hour}
	tight     = window{5, 24 * time.Hour} // or a GCRA would admit again after a while
)

// rows are all lines, in the order of the tables.
func rows() []row {
	var all []row
	add := func(r row) {
		r.number = len(all)
		all = append(all, r)
		if !r.limiter.plainOnly && r.limiter.name != noLimiter.name {
			r.number, r.auto = len(all), true
			all = append(all, r)
		}
	}
	add(row{group: groupBaseline, limiter: ping})
	add(row{group: groupBaseline, limiter: noopScript})
	add(row{group: groupBaseline, limiter: commandsAlone})
	for _, l := range limiters() {
		if l.windows != 2 {
			add(row{group: groupOne, limiter: l, windows: []window{perMinute}})
		}
	}
	for _, l := range limiters() {
		add(row{group: groupTwo, limiter: l, windows: []window{perMinute, perDay}})
	}
	for _, l := range limiters() {
		if l.windows != 2 {
			add(row{group: groupRejected, limiter: l, windows: []window{tight}, full: true})
		}
	}
	add(row{group: groupHTTP, limiter: noLimiter, http: true})
	for _, l := range limiters() {
		add(row{group: groupHTTP, limiter: l, windows: []window{perMinute, perDay}, http: true})
	}
	return all
}

// always tells a row that the others are measured by.
func (r row) always() bool {
	return r.group == groupBaseline || r.limiter.name == noLimiter.name
}

// withWindows is the row under other limits.
func (r row) withWindows(limits ...int) row {
	lengths := []time.Duration{time.Minute, 24 * time.Hour}
	windows := make([]window, len(r.windows))
	for i := range windows {
		windows[i] = window{limits[i], lengths[i]}
	}
	r.windows, r.full = windows, false
	return r
}
