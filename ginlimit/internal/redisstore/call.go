package redisstore

import (
	"sync/atomic"
	"time"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
)

// call has the keys and arguments of one script call. With few claims it is one allocation.
type call struct {
	keys []string
	args []any

	keysOfFew [2]string
	argsOfFew [8]any
}

func newCall(claims []budget.Claim, args int) *call {
	c := &call{}
	c.keys, c.args = c.keysOfFew[:0], c.argsOfFew[:0]
	if len(claims) > len(c.keysOfFew) {
		c.keys = make([]string, 0, len(claims))
	}
	if args > len(c.argsOfFew) {
		c.args = make([]any, 0, args)
	}
	for _, claim := range claims {
		c.keys = append(c.keys, claim.Key)
	}
	return c
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
	// Fibonacci hashing: odd multipliers, of which the upper ten bits are kept.
	place := &k[(uint64(b.Window)*0x9e3779b97f4a7c15+uint64(b.Limit)*0xbf58476d1ce4e5b9+uint64(b.Form()))>>54]
	if n := place.Load(); n != nil && n.of == b {
		return n
	}
	n := newNumbers(b)
	place.Store(n)
	return n
}
