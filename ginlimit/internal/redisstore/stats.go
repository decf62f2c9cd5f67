package redisstore

import "github.com/sony/gobreaker/v2"

// Stats is the state of a store.
type Stats struct {
	Breakers int      // one, and for a client of several nodes one more for each node that was called
	Open     int      // those of them that let only probes through
	Groups   []uint64 // Groups[n] is how often n waiting decisions were sent together; nil: never grouped
}

// Stats returns the state of the store. It does not call Redis.
func (s *Store) Stats() (stats Stats) {
	count := func(b *breaker) {
		stats.Breakers++
		if b.states.State() != gobreaker.StateClosed {
			stats.Open++
		}
	}
	count(s.breakers.all)
	s.breakers.each.Range(func(_, b any) bool {
		count(b.(*breaker))
		return true
	})
	if s.groups != nil {
		stats.Groups = make([]uint64, len(s.groups.sent))
		for n := range stats.Groups {
			stats.Groups[n] = s.groups.sent[n].Load()
		}
	}
	return stats
}
