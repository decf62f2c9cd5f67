package storetest

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
)

// model is the simplest possible limiter: a list of the admitted requests of each key, which every call reads
// from end to end.
type model struct {
	logs map[string][]Admission // in the order of admission
	ttl  map[string]time.Duration
}

// Admission is one request in a log.
type Admission struct {
	At int64 // Unix milliseconds
	ID string
}

func newModel() *model {
	return &model{logs: map[string][]Admission{}, ttl: map[string]time.Duration{}}
}

// inWindow are the admissions that count at now: those less than a window old, and those from the future,
// after the clock was set back.
func inWindow(log []Admission, now int64, window time.Duration) (in []Admission) {
	for _, a := range log {
		if now-a.At < window.Milliseconds() {
			in = append(in, a)
		}
	}
	return in
}

func contains(log []Admission, id string) bool {
	return slices.ContainsFunc(log, func(a Admission) bool { return a.ID == id })
}

// reply is the decision on a call that is not in the log: admitted, or rejected until enough admissions have
// left, if no other call comes. The wait is never longer than one window.
func reply(log []Admission, now int64, b budget.Budget) budget.Verdict {
	count := len(inWindow(log, now, b.Window))
	if count < b.Limit {
		return budget.Verdict{Allowed: true, Used: count}
	}
	retry := b.Window
	for _, a := range log {
		wait := time.Duration(a.At-now)*time.Millisecond + b.Window // until this one leaves
		if wait > 0 && wait < retry && len(inWindow(log, now+wait.Milliseconds(), b.Window)) < b.Limit {
			retry = wait
		}
	}
	return budget.Verdict{Used: count, RetryAfter: retry}
}

func (m *model) admit(now int64, id string, claims []budget.Claim) (verdicts []budget.Verdict) {
	for _, claim := range claims {
		key := claim.Key
		m.keep(key, inWindow(m.logs[key], now, claim.Window))
		r := reply(m.logs[key], now, claim.Budget)
		if contains(m.logs[key], id) {
			r = budget.Verdict{Allowed: true, Used: len(m.logs[key])}
		}
		verdicts = append(verdicts, r)
		if !r.Allowed {
			m.restamp(claim, now)
			return verdicts
		}
	}
	for i, claim := range claims {
		key := claim.Key
		if !contains(m.logs[key], id) {
			m.keep(key, append(m.logs[key], Admission{now, id}))
			m.ttl[key] = claim.Window + time.Second
			verdicts[i].Used++
		}
	}
	return verdicts
}

// restamp is what a rejection does to a log after the clock was ahead and went back. If the entry to wait for
// is in the future, all entries in the future are set to now.
func (m *model) restamp(claim budget.Claim, now int64) {
	log := slices.Clone(m.logs[claim.Key])
	slices.SortStableFunc(log, func(a, b Admission) int { return cmp.Compare(a.At, b.At) })
	blocking := len(log) - max(0, claim.Limit)
	if blocking >= len(log) || log[blocking].At <= now {
		return
	}
	for i := range log {
		log[i].At = min(log[i].At, now)
	}
	m.logs[claim.Key] = log
	m.ttl[claim.Key] = claim.Window + time.Second
}

func (m *model) peek(now int64, claims []budget.Claim) (verdicts []budget.Verdict) {
	for _, claim := range claims {
		verdicts = append(verdicts, reply(m.logs[claim.Key], now, claim.Budget))
	}
	return verdicts
}

// giveBack sets the TTL of the newest remaining entry, if that is sooner.
func (m *model) giveBack(now int64, id string, claims []budget.Claim) {
	for _, claim := range claims {
		key := claim.Key
		if !contains(m.logs[key], id) {
			continue
		}
		m.keep(key, slices.DeleteFunc(m.logs[key], func(a Admission) bool { return a.ID == id }))
		newest := int64(math.MinInt64)
		for _, a := range m.logs[key] {
			newest = max(newest, a.At)
		}
		if len(m.logs[key]) > 0 {
			left := time.Duration(newest-now)*time.Millisecond + claim.Window + time.Second
			m.ttl[key] = min(m.ttl[key], max(time.Millisecond, left))
		}
	}
}

func (m *model) reset(keys []string) {
	for _, key := range keys {
		m.keep(key, nil)
	}
}

// keep sets the log of a key. An empty log means that there is no key.
func (m *model) keep(key string, log []Admission) {
	m.logs[key] = log
	if len(log) == 0 {
		delete(m.logs, key)
		delete(m.ttl, key)
	}
}
