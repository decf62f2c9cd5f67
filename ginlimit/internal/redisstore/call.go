package redisstore

import (
	"maps"
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
type numbers struct{ form, windowMS, limit, ttl any }

func newNumbers(b budget.Budget) *numbers {
	window, limit := b.Window.Milliseconds(), max(0, b.Limit) // Redis refuses an index far below zero
	if b.Form() == budget.Lease {
		window, limit = leaseMS, max(budget.NoLimit, b.Limit)
	}
	return &numbers{
		form:     b.Form().String(),
		windowMS: window,
		limit:    limit,
		ttl:      int64(b.Window/time.Second) + int64(slack/time.Second),
	}
}

// knownNumbers caches the numbers of budgets, so that those of a tier table are allocated once. The zero
// value is empty.
type knownNumbers struct {
	known atomic.Pointer[map[numbersOf]*numbers]
}

// numbersOf is what numbers depend on. It has no padding, so that it is hashed at once.
type numbersOf struct {
	window time.Duration
	limit  int
	form   uint64
}

// maxKnown bounds what is kept. Further budgets, such as those of Check with many different limits, are
// allocated at each call.
const maxKnown = 256

func (k *knownNumbers) of(b budget.Budget) *numbers {
	known, key := k.known.Load(), numbersOf{b.Window, b.Limit, uint64(b.Form())}
	if known != nil {
		if n, ok := (*known)[key]; ok {
			return n
		}
		if len(*known) >= maxKnown {
			return newNumbers(b)
		}
	}
	n := newNumbers(b)
	more := map[numbersOf]*numbers{key: n}
	if known != nil {
		maps.Copy(more, *known)
	}
	k.known.CompareAndSwap(known, &more) // if another call was first, the next call adds this one
	return n
}
