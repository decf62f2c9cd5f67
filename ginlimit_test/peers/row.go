package main

import (
	"cmp"
	"time"
)

// The groups of rows: each is a table of its own.
const (
	groupBaseline = "Baselines"
	groupOne      = "One window"
	groupLone     = "One window, a lone caller"
	groupTwo      = "Two windows"
	groupRejected = "Rejected, one window"
	groupHTTP     = "HTTP through Gin, two windows"
)

// row is a line of a table: a limiter in a situation. What is zero is as the command line says.
type row struct {
	group   string
	limiter limiter
	label   string // in place of the limiter's name
	windows []window
	callers int  // at a time
	users   int  // over whom the calls spread
	held    int  // entries of each user's log at first, which is then made anew for each measurement
	visits  int  // so often each user calls, also on a log made anew, and not for a time
	http    bool // through Gin
	full    bool // every user has used up the window: all calls are rejected
	auto    bool // over client.AutoPipeline(); a row has such a twin if its limiter may
	number  int  // tells its users from those of other rows
}

func (r row) name() string {
	name := cmp.Or(r.label, r.limiter.name)
	if r.auto && r.visits == 0 { // those of visits all are
		name += ", AutoPipeline"
	}
	return name
}

func (r row) title() string { return r.group + ": " + r.name() }

// remade tells that the users' logs are made anew for each measurement.
func (r row) remade() bool { return r.held > 0 || r.visits > 0 }

// The limits that are asked for: nobody reaches the first two.
var (
	perMinute = window{600, time.Minute}
	perDay    = window{100_000, 24 * time.Hour}
	tight     = window{5, 24 * time.Hour} // or a GCRA would admit again after a while
)

// rows are all lines of a part of the report, in the order of the tables, and how often each is measured in a
// round.
func rows(part string, o options) (all []row, slices int, err error) {
	add := func(r row, limiters ...limiter) {
		for _, r.limiter = range limiters {
			for _, r.auto = range []bool{false, true} {
				r.number = len(all)
				if r.auto && !r.limiter.plainOnly || !r.auto && r.visits == 0 {
					all = append(all, r)
				}
			}
		}
	}
	add(row{group: groupBaseline}, ping)
	switch part {
	case "scripts":
		return all, 1, addScripts(add, o)
	case "growth":
		addGrowth(add, o.growth)
		return all, 1, nil
	}
	onOne := []limiter{redisRate, ululeLimiter, throttledGCRA, ginRateLimit, ginlimitSeparate}
	onTwo := append(onOne, ginlimitAtomic)
	alone := append(onOne, ginlimitAlone)
	add(row{group: groupBaseline}, noopScript, commandsAlone)
	add(row{group: groupOne, windows: []window{perMinute}}, alone...)
	add(row{group: groupLone, windows: []window{perMinute}, callers: 1}, ginlimitAlone, ginlimitSeparate)
	add(row{group: groupTwo, windows: []window{perMinute, perDay}}, onTwo...)
	add(row{group: groupRejected, windows: []window{tight}, full: true}, append(onOne, ginlimitCached)...)
	add(row{group: groupHTTP, http: true}, noLimiter)
	add(row{group: groupHTTP, windows: []window{perMinute, perDay}, http: true}, onTwo...)
	return all, o.slices, nil
}

// withLimits is the row under other limits.
func (r row) withLimits(limits ...int) row {
	windows := []window{{limits[0], time.Minute}, {limits[1], 24 * time.Hour}}
	r.windows, r.full = windows[:len(r.windows)], false
	return r
}
