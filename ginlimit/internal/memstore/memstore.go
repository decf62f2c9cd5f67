// Package memstore decides claims in this process. Its decisions are those of the scripts on Redis.
package memstore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
)

// Bounds of a store, about 160 MB in all. Above either, the least recently used key is forgotten, and its
// user starts anew; a key in use is never forgotten for its own size.
const (
	Keys    = 100_000   // budgets of users, about 450 bytes each; a user with a minute and a day has two
	Entries = 1_000_000 // admitted requests in all of them, about 130 bytes each; of a Sum, its slices
)

// Store is a budget.Store of one process. It never fails and never waits, so it ignores contexts. One mutex
// replaces Redis's single thread; what it guards takes about a microsecond.
type Store struct {
	clock func() time.Time

	mu      sync.Mutex
	budgets *simplelru.LRU[string, kept]
	entries int // of all budgets
}

// kept is a budget of one of the forms: *requestLog, *sum, leases or gate.
type kept interface{ len() int }

// New returns an empty store. A nil clock is this process's monotonic one, so that a stepped wall clock
// neither admits too much nor locks anybody out.
func New(clock func() time.Time) *Store {
	if clock == nil {
		start := time.Now()
		clock = func() time.Time { return start.Add(time.Since(start)) }
	}
	s := &Store{clock: clock}
	budgets, err := simplelru.NewLRU(Keys, func(_ string, k kept) { s.entries -= k.len() })
	if err != nil {
		panic("memstore: " + err.Error()) // a size below 1 is its only error
	}
	s.budgets = budgets
	return s
}

// Admit implements budget.Store.
func (s *Store) Admit(_ context.Context, id string, claims []budget.Claim) ([]budget.Verdict, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock().UnixMilli()

	at, repeated := s.admitted(id, claims, now)
	verdicts := make([]budget.Verdict, 0, len(claims))
	for _, claim := range claims {
		v := s.look(claim, id, now, repeated)
		verdicts = append(verdicts, v)
		if !v.Allowed {
			return verdicts, now, nil
		}
	}
	if repeated {
		return verdicts, at, nil
	}
	for i, claim := range claims {
		verdicts[i].Used += s.take(claim, id, now)
	}
	for s.entries > Entries && s.budgets.Len() > len(claims) {
		s.budgets.RemoveOldest()
	}
	return verdicts, now, nil
}

// admitted reports whether a request with a Sum was admitted before, and when. Logs do not need it: each of
// them remembers its requests.
func (s *Store) admitted(id string, claims []budget.Claim, now int64) (at int64, ok bool) {
	for _, claim := range claims {
		if claim.Form() == budget.Lease {
			held, _ := get[leases](s, claim.Key)
			end, ok := held[id]
			return end - budget.LeaseTime.Milliseconds(), ok
		}
	}
	for _, claim := range claims {
		if claim.Form() == budget.Sum {
			return now, slices.ContainsFunc(claims, func(c budget.Claim) bool {
				log, _ := get[*requestLog](s, c.Key)
				return c.Form() == budget.Log && log.holds(id)
			})
		}
	}
	return now, false
}

// look decides one claim, and removes from the budget what has left its window.
func (s *Store) look(claim budget.Claim, id string, now int64, repeated bool) (v budget.Verdict) {
	switch claim.Form() {
	case budget.Log:
		log := s.trimmed(claim, now)
		if more := claim.Entries() - 1; more >= claim.Limit && claim.Limit > 0 {
			return budget.Verdict{Used: log.len(), TooLarge: true}
		} else if more > 0 {
			claim.Limit -= more
		}
		v = log.verdict(0, now, claim.Budget)
		if !v.Allowed && (repeated || log.holds(id)) {
			v = budget.Verdict{Allowed: true, Used: v.Used}
		}
		if !v.Allowed {
			log.restampFrom(v.Used-max(0, claim.Limit), now)
		}
	case budget.Sum:
		sum := s.current(claim, now)
		if v = sum.verdict(claim.Cost, now, claim.Budget); v.Allowed || repeated {
			v = budget.Verdict{Allowed: true, Used: v.Used}
		}
	case budget.Lease:
		held, _ := get[leases](s, claim.Key)
		if v = held.verdict(now, claim.Budget); repeated {
			v = budget.Verdict{Allowed: true, Used: v.Used}
		}
		if !v.Allowed {
			held.shorten(now)
		}
	case budget.Gate:
		closed, _ := get[gate](s, claim.Key)
		if v = closed.verdict(now); repeated {
			v = budget.Verdict{Allowed: true}
		}
	}
	return v
}

// take takes the cost of a claim, and returns by how much the usage of its budget grows.
func (s *Store) take(claim budget.Claim, id string, now int64) int {
	switch claim.Form() {
	case budget.Log:
		log := s.trimmed(claim, now)
		if log.holds(id) {
			return 0
		}
		if log == nil {
			log = newRequestLog()
		}
		log.add(now, id)
		for n := 2; n <= claim.Entries(); n++ {
			log.add(now, fmt.Sprintf("%s:%d", id, n))
		}
		s.keep(claim.Key, log, claim.Entries())
		return claim.Entries()
	case budget.Sum:
		sum := s.current(claim, now)
		if claim.Cost > 0 {
			before := sum.len()
			sum.take(claim.Cost, now, claim.Window)
			s.keep(claim.Key, sum, sum.len()-before)
		}
		return claim.Cost
	case budget.Gate:
		return 0
	}
	held, ok := get[leases](s, claim.Key)
	if !ok {
		held = leases{}
	}
	before := held.len()
	held.take(id, now)
	s.keep(claim.Key, held, held.len()-before)
	return 1
}

// Peek implements budget.Store.
func (s *Store) Peek(_ context.Context, claims []budget.Claim) ([]budget.Verdict, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock().UnixMilli()

	verdicts := make([]budget.Verdict, len(claims))
	for i, claim := range claims {
		switch claim.Form() {
		case budget.Log:
			log, _ := get[*requestLog](s, claim.Key)
			verdicts[i] = log.verdict(log.expired(now, claim.Window), now, claim.Budget)
		case budget.Sum:
			kept, _ := get[*sum](s, claim.Key)
			live := kept.at(now, claim.Window)
			verdicts[i] = live.verdict(1, now, claim.Budget)
			if verdicts[i].TooLarge { // even 1 is too large: the limit is 0
				verdicts[i] = budget.Verdict{Used: live.total, RetryAfter: claim.Window}
			}
		case budget.Lease:
			held, _ := get[leases](s, claim.Key)
			verdicts[i] = held.verdict(now, claim.Budget)
		case budget.Gate:
			closed, _ := get[gate](s, claim.Key)
			verdicts[i] = closed.verdict(now)
		}
	}
	return verdicts, nil
}

// Finish implements budget.Store.
func (s *Store) Finish(_ context.Context, a budget.Admission, used []int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock().UnixMilli()
	at, known := s.admitted(a.ID, a.Claims, now)
	if a.At == 0 {
		a.At = at
	}
	if !known && slices.ContainsFunc(a.Claims, func(c budget.Claim) bool { return c.Form() == budget.Lease }) {
		return nil
	}
	for i, claim := range a.Claims {
		stays := 0
		if used != nil {
			stays = used[i]
		}
		switch claim.Form() {
		case budget.Log:
			if log, _ := get[*requestLog](s, claim.Key); stays == 0 && log.holds(a.ID) {
				before := log.len()
				log.remove(a.ID)
				for n := 2; n <= claim.Entries(); n++ {
					log.remove(fmt.Sprintf("%s:%d", a.ID, n))
				}
				s.keep(claim.Key, log, log.len()-before)
			}
		case budget.Sum:
			if known {
				s.settle(claim, stays, a.At, now)
			}
		case budget.Lease:
			held, _ := get[leases](s, claim.Key)
			before := held.len()
			delete(held, a.ID)
			s.keep(claim.Key, held, held.len()-before)
		}
	}
	return nil
}

// settle replaces what a claim has taken from a sum by what it has used.
func (s *Store) settle(claim budget.Claim, used int, at, now int64) {
	sum := s.current(claim, now)
	before := sum.len()
	if used > claim.Cost {
		sum.take(used-claim.Cost, now, claim.Window)
	} else {
		sum.giveBack(claim.Cost-used, at, claim.Window)
	}
	s.keep(claim.Key, sum, sum.len()-before)
}

// Renew implements budget.Store.
func (s *Store) Renew(_ context.Context, held []budget.Held) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	end := s.clock().Add(budget.LeaseTime).UnixMilli()
	for _, h := range held {
		if l, _ := get[leases](s, h.Key); l[h.ID] != 0 {
			l[h.ID] = end
		}
	}
	return nil
}

// Close implements budget.Store.
func (s *Store) Close(_ context.Context, key string, d time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, there := get[gate](s, key)
	more := 1
	if there {
		more = 0
	}
	s.keep(key, max(before, gate(s.clock().Add(max(d, time.Millisecond)).UnixMilli())), more)
	return nil
}

// Reset implements budget.Store.
func (s *Store) Reset(_ context.Context, keys []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		s.budgets.Remove(key)
	}
	return nil
}

// get returns what is kept under a key. The form of a key never changes. Reading does not count as a use.
func get[K kept](s *Store, key string) (K, bool) {
	found, _ := s.budgets.Peek(key)
	k, ok := found.(K)
	return k, ok
}

// keep stores a budget that has grown by more entries, or removes it if it is empty.
func (s *Store) keep(key string, k kept, more int) {
	s.entries += more
	if k.len() > 0 {
		s.budgets.Add(key, k)
	} else if s.budgets.Contains(key) {
		s.budgets.Add(key, k) // so that the removed value has no entries
		s.budgets.Remove(key)
	}
}

// trimmed returns the log of a claim without its expired entries, or nil if nothing is left.
func (s *Store) trimmed(claim budget.Claim, now int64) *requestLog {
	log, ok := get[*requestLog](s, claim.Key)
	if !ok {
		return nil
	}
	expired := log.expired(now, claim.Window)
	log.trim(expired)
	s.keep(claim.Key, log, -expired)
	if log.len() == 0 {
		return nil
	}
	return log
}

// current returns the sum of a claim as of now, and stores that. A missing sum is empty.
func (s *Store) current(claim budget.Claim, now int64) *sum {
	kept, ok := get[*sum](s, claim.Key)
	if !ok {
		return &sum{}
	}
	live := kept.at(now, claim.Window)
	s.keep(claim.Key, &live, live.len()-kept.len())
	return &live
}
