// Package rejectioncache repeats known rejections without a call to the store.
package rejectioncache

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
)

const (
	// longest is how long a rejection is repeated. Another process may have given something back since.
	longest = time.Second
	// renewed is when one caller calls the store again, so that not all do so after the second.
	renewed = 900 * time.Millisecond
)

// Store is a budget.Store that remembers the latest rejection of each key. It repeats that for requests with
// the same limit and cost, until one would be admitted, and for a second at most. If this process gives back
// or resets something, the rejection is forgotten at once. Rejections by a Lease, and of requests that are
// too large, are not remembered.
//
// Do not use it for a repeat of an admitted request, which even a full window admits.
type Store struct {
	budget.Store
	now func() time.Time

	mu       sync.Mutex
	rejected *simplelru.LRU[string, rejection]
	hits     uint64
}

// rejection is one rejection by the store.
type rejection struct {
	budget   budget.Budget
	cost     int
	asked    time.Time // before the store was called
	verdicts []budget.Verdict
	renewing bool // one caller calls the store again
}

// New returns a store that remembers the rejections of up to size keys. A nil clock is the monotonic one.
func New(next budget.Store, size int, now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	rejected, err := simplelru.NewLRU[string, rejection](size, nil)
	if err != nil {
		panic("rejectioncache: " + err.Error()) // a size below 1 is its only error
	}
	return &Store{Store: next, now: now, rejected: rejected}
}

// Admit calls the store unless one of the claims is known to be rejected.
func (s *Store) Admit(
	ctx context.Context,
	id string,
	claims []budget.Claim,
) ([]budget.Verdict, int64, error) {
	asked := s.now()
	if verdicts := s.find(claims, asked); verdicts != nil {
		return verdicts, asked.UnixMilli(), nil
	}
	verdicts, at, err := s.Store.Admit(ctx, id, claims)
	if err != nil {
		return nil, 0, err
	}
	last := len(verdicts) - 1
	if v := verdicts[last]; !v.Allowed && !v.TooLarge && claims[last].Form() != budget.Lease {
		s.mu.Lock()
		s.rejected.Add(claims[last].Key, rejection{
			budget: claims[last].Budget, cost: claims[last].Cost, asked: asked, verdicts: slices.Clone(verdicts),
		})
		s.mu.Unlock()
	}
	return verdicts, at, nil
}

// find returns the verdicts of a rejection that is still valid, or nil.
func (s *Store) find(claims []budget.Claim, now time.Time) []budget.Verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rejected.Len() == 0 {
		return nil
	}
	for i, claim := range claims {
		r, ok := s.rejected.Get(claim.Key)
		if !ok || r.budget != claim.Budget || r.cost != claim.Cost || len(r.verdicts) != i+1 {
			continue
		}
		since := now.Sub(r.asked)
		left := r.verdicts[i].RetryAfter - since
		if since < 0 || since >= longest || left <= 0 {
			s.rejected.Remove(claim.Key)
			continue
		}
		if since >= renewed && !r.renewing {
			r.renewing = true
			s.rejected.Add(claim.Key, r)
			continue
		}
		s.hits++
		verdicts := slices.Clone(r.verdicts)
		verdicts[i].RetryAfter = (left + time.Millisecond - 1).Truncate(time.Millisecond)
		return verdicts
	}
	return nil
}

// Hits returns how many requests were rejected without a call to the store.
func (s *Store) Hits() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hits
}

// Finish forgets the rejections of keys that may have room now.
func (s *Store) Finish(ctx context.Context, a budget.Admission, used []int) error {
	err := s.Store.Finish(ctx, a, used)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, claim := range a.Claims {
		if used == nil || claim.Form() == budget.Sum && used[i] < claim.Cost {
			s.rejected.Remove(claim.Key)
		}
	}
	return err
}

// Reset forgets the rejections of the keys.
func (s *Store) Reset(ctx context.Context, keys []string) error {
	err := s.Store.Reset(ctx, keys)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		s.rejected.Remove(key)
	}
	return err
}
