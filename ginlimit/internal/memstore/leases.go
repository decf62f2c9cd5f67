package memstore

import "github.com/gin-tiers/ratelimit/ginlimit/internal/budget"

// leases are the requests of an owner in progress, with the end of each lease in Unix milliseconds.
type leases map[string]int64

func (l leases) len() int { return len(l) }

// live counts the leases that have not ended.
func (l leases) live(now int64) (n int) {
	for _, end := range l {
		if end > now {
			n++
		}
	}
	return n
}

func (l leases) verdict(now int64, b budget.Budget) budget.Verdict {
	used := l.live(now)
	if b.Limit == budget.NoLimit || used < b.Limit {
		return budget.Verdict{Allowed: true, Used: used}
	}
	return budget.Verdict{Used: used, RetryAfter: budget.Busy}
}

// take adds a lease, and forgets those that ended long ago.
func (l leases) take(id string, now int64) {
	for id, end := range l {
		if end <= now-budget.Forget.Milliseconds() {
			delete(l, id)
		}
	}
	l[id] = now + budget.LeaseTime.Milliseconds()
}

// shorten ends every lease no later than one that begins now, in case the clock was ahead and went back.
func (l leases) shorten(now int64) {
	for id, end := range l {
		l[id] = min(end, now+budget.LeaseTime.Milliseconds())
	}
}
