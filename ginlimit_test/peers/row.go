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
	groupTwo      = "Two windows, in Gin without a network"
	groupRejected = "Rejected, one window"
	groupHTTP     = "HTTP through Gin, two windows"
)

// way is how a row's decisions are asked for.
type way int

const (
	bare     way = iota // by a call of the limiter
	inGin               // by its handlers, in this process
	overHTTP            // by a request to a service that has mounted them
)

// row is a line of a table: a limiter in a situation. What is zero is as the command line says.
type row struct {
	group   string
	limiter limiter
	client  client
	way     way
	label   string // in place of the limiter's name
	windows []window
	callers int  // at a time
	inTurn  bool // one caller asks this row and its neighbours of the group in turn, call by call
	users   int  // over whom the calls spread
	held    int  // entries of each user's log at first, which is then made anew for each measurement
	visits  int  // so often each user calls, also on a log made anew, and not for a time
	full    bool // every user has used up the window: all calls are rejected
	number  int  // tells its users from those of other rows
}

func (r row) name() string {
	name := cmp.Or(r.label, r.limiter.name)
	if r.visits == 0 { // those of visits are all pipelined
		name += r.client.suffix()
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
			clients := r.limiter.clients
			if r.visits > 0 {
				clients = []client{pipelined}
			} else if clients == nil {
				clients = []client{plain, pipelined}
			}
			for _, r.client = range clients {
				r.number = len(all)
				all = append(all, r)
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
	onTwo := append(onOne[:len(onOne):len(onOne)], ginlimitAtomic)
	minute, both := []window{perMinute}, []window{perMinute, perDay}
	add(row{group: groupBaseline}, noopScript, commandsAlone)
	add(row{group: groupOne, windows: minute}, onOne...)
	add(row{group: groupOne, windows: minute}, ginlimitAlone)
	add(row{group: groupLone, windows: minute, callers: 1, inTurn: true}, ginlimitAlone, ginlimitSeparate)
	add(row{group: groupTwo, windows: both, way: inGin}, onTwo...)
	add(row{group: groupRejected, windows: []window{tight}, full: true}, onOne...)
	add(row{group: groupRejected, windows: []window{tight}, full: true}, ginlimitCached)
	add(row{group: groupHTTP, way: overHTTP}, noLimiter)
	add(row{group: groupHTTP, windows: both, way: overHTTP}, onTwo...)
	return all, o.slices, nil
}
