package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
)

// scenario is a state of the users' logs, and what every call of theirs finds there.
type scenario struct {
	name    string
	users   int
	calls   int // of each user in a visit
	limit   int
	held    int  // entries in each log before the first call
	leaving bool // one entry leaves the window between a call and the next
	allowed bool // the verdict on every call
	day     bool // a second window is decided as well: it has room, and nothing leaves it
}

// scenarios have about as many entries each, so that what the server's caches hold differs little.
func scenarios(users int) []scenario {
	some := func(n int) int { return max(1, n) }
	return []scenario{
		{name: "free, window not full", users: some(users / 2), calls: 1, limit: 5, allowed: true},
		{name: "free, at its limit", users: some(users / 2), calls: 1, limit: 5, held: 5, leaving: true, allowed: true},
		{name: "free, rejected", users: some(users / 2), calls: 1, limit: 5, held: 5},
		{name: "pro, at its limit", users: some(users / 10), calls: 5, limit: 60, held: 60, leaving: true, allowed: true},
		{name: "enterprise, at its limit", users: some(users / 100), calls: 50, limit: 600, held: 600, leaving: true, allowed: true},
		{name: "free, two windows", users: some(users / 2), calls: 1, limit: 5, held: 5, leaving: true, allowed: true, day: true},
	}
}

const (
	// visits are how often each user comes in a round: a fresh log of the free tier is full then.
	visits = 5

	// spacing lies between the entries that a log holds at first. It is far longer than a round, so
	// that the server's clock finds in the log what the caller's finds.
	spacing = time.Minute

	dayLimit = 100
	dayHeld  = 40
	dayMS    = 86_400_000
)

// window is what a call asks for, counted from 0. As real time cannot pass in a benchmark, the window
// becomes shorter from call to call: that lets one entry leave, on any clock.
func (s scenario) window(call int) time.Duration {
	if !s.leaving {
		return time.Duration(s.held+1) * spacing
	}
	return time.Duration(s.held-call)*spacing - 3*spacing/4
}

func (s scenario) keys(prefix string, user int) []string {
	key := prefix + ":user_" + strconv.Itoa(user)
	if s.day {
		return []string{key + ":60", key + ":86400"}
	}
	return []string{key + ":60"}
}

// fill appends the requests that make a user's logs.
func (s scenario) fill(buf []byte, keys []string, now int64) (requests []byte, replies int) {
	held := []int{s.held, dayHeld}
	for i, key := range keys {
		if held[i] == 0 {
			continue
		}
		add := []string{"ZADD", key}
		for n := held[i]; n > 0; n-- {
			at := now - int64(n)*spacing.Milliseconds() + spacing.Milliseconds()/2
			add = append(add, strconv.FormatInt(at, 10), requestID())
		}
		buf = appendRequest(buf, add...)
		buf = appendRequest(buf, "EXPIRE", key, "86401")
		replies += 2
	}
	return buf, replies
}

// call appends the requests by which a script decides one call: one, or one for each key where the
// script knows only one.
func (s scenario) call(buf []byte, v *variant, keys []string, now string, call int) (requests []byte, replies int) {
	member := requestID()
	window := s.window(call)
	first := []string{strconv.FormatInt(window.Milliseconds(), 10), strconv.Itoa(s.limit), member, strconv.Itoa(int(window/time.Second) + 1)}
	if v.serverClock {
		now = ""
	}
	if v.oneKey {
		for i, key := range keys {
			if i > 0 {
				first = []string{strconv.Itoa(dayMS), strconv.Itoa(dayLimit), member, "86401"}
			}
			buf = appendRequest(buf, append([]string{"EVALSHA", v.sha, "1", key, now}, first...)...)
		}
		return buf, v.requests(s)
	}
	args := append([]string{"EVALSHA", v.sha, strconv.Itoa(len(keys))}, keys...)
	args = append(append(args, now), first...)
	if s.day {
		args = append(args, strconv.Itoa(dayMS), strconv.Itoa(dayLimit), "86401")
	}
	return appendRequest(buf, args...), 1
}

// requestID is as long as a UUID's text, and made faster.
func requestID() string { return fmt.Sprintf("%016x-%019x", rand.Uint64(), rand.Uint64()) }
