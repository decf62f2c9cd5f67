package redisstore

import "github.com/sony/gobreaker/v2"

// Stats is how a store stands.
type Stats struct {
	Breakers int      // one for each node that was asked, or one in all
	Open     int      // of them, those that let nothing through but probes
	Groups   []uint64 // Groups[n] is how often n decisions that had waited went together; nil: they never do
}

// Stats returns how the store stands. It asks Redis nothing.
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
