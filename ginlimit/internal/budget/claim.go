package budget

import (
	"context"
	"time"
)

// Claim is one request's part in one budget of one owner.
type Claim struct {
	Key string
	Budget
}

// Verdict is a store's word on one claim.
type Verdict struct {
	Allowed    bool
	Used       int           // in the window; with this request where it was admitted
	RetryAfter time.Duration // whole milliseconds, 1 ms to the window, where it was not; otherwise 0
}

// Remaining is what is left of a budget, never negative.
func (v Verdict) Remaining(limit int) int { return max(0, max(0, limit)-v.Used) }

// Store is where requests are counted. There is at least one claim in every call, shortest window
// first, and all keys of a call belong to one owner. Every store passes the suite in storetest. A
// Store is safe for concurrent use.
type Store interface {
	// Admit decides the request with this id against all claims, all or none. The verdicts end with
	// the first claim that rejects; the last one is allowed only if all are. A repeat of an admitted
	// id is admitted and counted once.
	Admit(ctx context.Context, id string, claims []Claim) ([]Verdict, error)
	// Peek returns for every claim what Admit would find, and writes nothing.
	Peek(ctx context.Context, claims []Claim) ([]Verdict, error)
	// GiveBack takes an admitted id out of all claims, as if it had never come. An id that is not
	// there is no error.
	GiveBack(ctx context.Context, id string, claims []Claim) error
	// Reset forgets what was counted under the keys, in one step.
	Reset(ctx context.Context, keys []string) error
}
