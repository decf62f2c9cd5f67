package memstore

import (
	"time"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
)

// sum is a bounded window, like that of the scripts: for each sixtieth of the window, the amount taken there
// and the time of the last request there. It frees amounts late, by less than a sixtieth, and never early.
type sum struct {
	total   int
	records []record // oldest first
}

type record struct {
	at     int64 // Unix milliseconds
	amount int
}

func (s *sum) len() int { return len(s.records) }

// at returns the sum as of now: without the records that have left, and with one record of now instead of
// those from the future. It does not change s.
func (s *sum) at(now int64, window time.Duration) sum {
	if s == nil {
		return sum{}
	}
	live := sum{total: s.total}
	ahead := 0
	for _, r := range s.records {
		switch {
		case r.at <= now-window.Milliseconds():
			live.total -= r.amount
		case r.at > now:
			ahead += r.amount
		default:
			live.records = append(live.records, r)
		}
	}
	if ahead > 0 {
		live.add(ahead, now, window)
	}
	return live
}

// verdict decides whether the cost fits.
func (s *sum) verdict(cost int, now int64, b budget.Budget) budget.Verdict {
	v := budget.Verdict{Allowed: true, Used: s.total}
	switch excess := s.total + cost - b.Limit; {
	case cost > b.Limit:
		v.Allowed, v.TooLarge = false, true
	case cost > 0 && excess > 0:
		v.Allowed, v.RetryAfter = false, s.wait(excess, now, b.Window)
	}
	return v
}

// wait returns the time until this amount has left, at most the window.
func (s *sum) wait(amount int, now int64, window time.Duration) time.Duration {
	for _, r := range s.records {
		if amount -= r.amount; amount <= 0 {
			return max(1, time.Duration(r.at-now)+window/time.Millisecond) * time.Millisecond
		}
	}
	return window
}

func (s *sum) take(amount int, now int64, window time.Duration) {
	s.total += amount
	s.add(amount, now, window)
}

// add adds to the records an amount that is taken now.
func (s *sum) add(amount int, now int64, window time.Duration) {
	if last := len(s.records) - 1; last >= 0 && slice(s.records[last].at, window) == slice(now, window) {
		s.records[last] = record{now, s.records[last].amount + amount}
		return
	}
	s.records = append(s.records, record{now, amount})
}

// giveBack returns an amount to the slice from which it was taken, if the slice is still there.
func (s *sum) giveBack(amount int, at int64, window time.Duration) {
	for i := len(s.records) - 1; i >= 0; i-- {
		if r := &s.records[i]; slice(r.at, window) == slice(at, window) {
			given := min(amount, r.amount)
			r.amount -= given
			s.total -= given
			return
		}
	}
}

// slice is the number of the sixtieth that contains a time.
func slice(at int64, window time.Duration) int64 { return at * budget.Slices / window.Milliseconds() }
