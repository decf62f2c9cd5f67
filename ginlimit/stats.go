package ginlimit

import "github.com/gin-tiers/ratelimit/ginlimit/internal/rejectioncache"

// Stats is the state of a limiter in this process, for metrics. All its scopes share it.
type Stats struct {
	Disabled bool // the kill switch is on
	Leases   int  // leases that requests in progress hold; see WithConcurrency

	CacheHits uint64 // rejections without a call to the store; see WithRejectionCache

	// Only for a limiter on Redis. A client of several nodes has a circuit breaker for each node that was
	// called, and one for finding nodes.
	Breakers     int
	BreakersOpen int      // those that let only probes through
	Groups       []uint64 // Groups[n] is how often n waiting decisions were sent together
}

// Stats returns the state of the limiter. It does not call Redis, and may be called at any time.
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
