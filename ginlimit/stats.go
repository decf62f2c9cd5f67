package ginlimit

import "github.com/gin-tiers/ratelimit/ginlimit/internal/rejectioncache"

// Stats is how a limiter stands in this process, for metrics. All its scopes share it.
type Stats struct {
	Disabled bool // the kill switch is on
	Leases   int  // of requests under way that hold one; see WithConcurrency

	CacheHits uint64 // rejections without asking the store; see WithRejectionCache

	// Of a limiter on Redis. A client of several nodes has a circuit breaker for each that was asked, and one
	// for finding them.
	Breakers     int
	BreakersOpen int      // those that let nothing through but probes
	Groups       []uint64 // Groups[n] is how often n decisions that had waited were sent together
}

// Stats returns how the limiter stands. It asks Redis nothing, and may be called at any time.
func (l *Limiter) Stats() Stats {
	s := Stats{Disabled: l.kill.on(), Leases: l.counter.Leases.Count()}
	if cache, ok := l.counter.Store.(*rejectioncache.Store); ok {
		s.CacheHits = cache.Hits()
	}
	if l.redis != nil {
		store := l.redis.Stats()
		s.Breakers, s.BreakersOpen, s.Groups = store.Breakers, store.Open, store.Groups
	}
	return s
}
