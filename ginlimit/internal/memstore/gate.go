package memstore

import (
	"time"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
)

// gate is the time at which a gate opens, in Unix milliseconds.
type gate int64

func (gate) len() int { return 1 }

func (g gate) verdict(now int64) budget.Verdict {
	if left := int64(g) - now; left > 0 {
		return budget.Verdict{RetryAfter: time.Duration(left) * time.Millisecond}
	}
	return budget.Verdict{Allowed: true}
}
