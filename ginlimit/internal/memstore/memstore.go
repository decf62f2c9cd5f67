// Package memstore decides claims in this process: the same decisions as the scripts make on Redis.
package memstore

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
)

// Bounds of a store, about 160 MB in all. Beyond either, the key that was used longest ago is forgotten,
// and its user starts anew; a key in use is never forgotten for its own size.
const (
	Keys    = 100_000   // windows of users, about 450 bytes each; a user with a minute and a day has two
	Entries = 1_000_000 // admitted requests in all of them, about 130 bytes each
)

// Store is a budget.Store of one process. It never fails and never waits, so it does not look at contexts.
// One mutex stands for Redis's single thread; what it guards takes about a microsecond.
type Store struct {
	clock func() time.Time

	mu      sync.Mutex
	logs    *simplelru.LRU[string, *requestLog]
	entries int // in all logs
}

// New returns an empty store. A nil clock is this process's monotonic one, so that a stepped wall clock
// neither admits too much nor locks anybody out.
func New(clock func() time.Time) *Store {
	if clock == nil {
		start := time.Now()
		clock = func() time.Time { return start.Add(time.Since(start)) }
	}
	s := &Store{clock: clock}
	logs, err := simplelru.NewLRU(Keys, func(_ string, l *requestLog) { s.entries -= l.len() })
	if err != nil {
		panic("memstore: " + err.Error()) // a size below 1 is its only error
	}
	s.logs = logs
	return s
}

// Admit implements budget.Store.
func (s *Store) Admit(_ context.Context, id string, claims []budget.Claim) ([]budget.Verdict, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock().UnixMilli()

	verdicts := make([]budget.Verdict, 0, len(claims))
	for _, claim := range claims {
		log := s.trimmed(claim, now)
		v := log.verdict(0, now, claim.Budget)
		if !v.Allowed && log.holds(id) {
			v = budget.Verdict{Allowed: true, Used: v.Used}
		}
		verdicts = append(verdicts, v)
		if !v.Allowed {
			log.restampFrom(v.Used-max(0, claim.Limit), now)
			return verdicts, nil
		}
	}
	for i, claim := range claims {
		log := s.trimmed(claim, now)
		if log.holds(id) {
			continue
		}
		if log == nil {
			log = newRequestLog()
			s.logs.Add(claim.Key, log)
		}
		log.add(now, id)
		s.entries++
		verdicts[i].Used++
	}
	for s.entries > Entries && s.logs.Len() > len(claims) {
		s.logs.RemoveOldest()
	}
	return verdicts, nil
}

// Peek implements budget.Store.
func (s *Store) Peek(_ context.Context, claims []budget.Claim) ([]budget.Verdict, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock().UnixMilli()

	verdicts := make([]budget.Verdict, len(claims))
	for i, claim := range claims {
		log, _ := s.logs.Peek(claim.Key)
		verdicts[i] = log.verdict(log.expired(now, claim.Window), now, claim.Budget)
	}
	return verdicts, nil
}

// GiveBack implements budget.Store.
func (s *Store) GiveBack(_ context.Context, id string, claims []budget.Claim) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, claim := range claims {
		log, _ := s.logs.Peek(claim.Key)
		if !log.holds(id) {
			continue
		}
		log.remove(id)
		s.entries--
		if log.len() == 0 {
			s.logs.Remove(claim.Key)
		}
	}
	return nil
}

// Reset implements budget.Store.
func (s *Store) Reset(_ context.Context, keys []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		s.logs.Remove(key)
	}
	return nil
}

// trimmed returns the log of a claim without its expired entries, nil where nothing is left.
func (s *Store) trimmed(claim budget.Claim, now int64) *requestLog {
	log, ok := s.logs.Get(claim.Key)
	if !ok {
		return nil
	}
	expired := log.expired(now, claim.Window)
	log.trim(expired)
	s.entries -= expired
	if log.len() == 0 {
		s.logs.Remove(claim.Key)
		return nil
	}
	return log
}
