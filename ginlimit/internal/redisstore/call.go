package redisstore

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
)

// newCall returns the keys of claims, and room for as many arguments. With few claims it is one allocation.
func newCall(claims []budget.Claim, n int) (keys []string, args []any) {
	var few struct {
		keys [2]string
		args [8]any
	}
	keys = slices.Grow(few.keys[:0], len(claims))
	for _, claim := range claims {
		keys = append(keys, claim.Key)
	}
	return keys, slices.Grow(few.args[:0], n)
}

// numbers are the script arguments of a budget. Each number in an interface would be an allocation.
type numbers struct {
	of                         budget.Budget
	form, windowMS, limit, ttl any
}

func newNumbers(b budget.Budget) *numbers {
	window, limit := b.Window.Milliseconds(), max(0, b.Limit) // Redis refuses an index far below zero
	if b.Form() == budget.Lease {
		window, limit = leaseMS, max(budget.NoLimit, b.Limit)
	}
	return &numbers{
		of:       b,
		form:     b.Form().String(),
		windowMS: window,
		limit:    limit,
		ttl:      int64(b.Window/time.Second) + int64(slack/time.Second),
	}
}

// knownNumbers caches the numbers of budgets, so that those of a tier table are allocated once. Each budget
// has one place, and a budget that meets another in its place replaces it. The zero value is empty.
type knownNumbers [1024]atomic.Pointer[numbers]

func (k *knownNumbers) of(b budget.Budget) *numbers {
	// Multiplication by odd numbers spreads the bits upwards, so the upper ten are the place.
	h := uint64(b.Window)*0x9e3779b97f4a7c15 + uint64(b.Limit)*0xbf58476d1ce4e5b9
	h += (uint64(b.Unit)<<8 | uint64(b.Form())) * 0x94d049bb133111eb
	place := &k[h>>54]
	if n := place.Load(); n != nil && n.of == b {
		return n
	}
	n := newNumbers(b)
	place.Store(n)
	return n
}
