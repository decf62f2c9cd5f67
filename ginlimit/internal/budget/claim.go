package budget

import (
	"context"
	"time"
)

// Claim is one request's part in one budget of one owner.
type Claim struct {
	Key string
	Budget
	Cost int // what the request takes: of a Sum 0 or more, of a Log 1 or more; 0 of a Log is 1; a Lease is 1
}

// Entries is how many entries of a Log a claim takes.
func (c Claim) Entries() int { return max(1, c.Cost) }

// Verdict is a store's word on one claim.
type Verdict struct {
	Used       int           // with this request where it was admitted
	RetryAfter time.Duration // whole milliseconds, 1 ms to the window, where it was not; otherwise 0
	Allowed    bool
	TooLarge   bool // the cost is above the whole limit: it will never pass, and RetryAfter is 0
}

// Remaining is what is left of a budget, never negative.
func (v Verdict) Remaining(limit int) int { return max(0, max(0, limit)-v.Used) }

const (
	// LeaseTime is how long a request under way is held without being renewed.
	LeaseTime = 15 * time.Second
	// Busy is RetryAfter where too many requests are under way: one may end at any moment.
	Busy = time.Second
	// Forget is how long after its LeaseTime a request may still be finished.
	Forget = 5 * time.Minute
	// Slices is how many parts of a window a Sum tells apart.
	Slices = 60
)

// Admission is an admitted request, as Finish wants it back.
type Admission struct {
	ID     string
	At     int64 // by the store's clock, in Unix milliseconds; 0 where all claims are logs
	Claims []Claim
}

// Held is a lease of a request under way.
type Held struct{ Key, ID string }

// Store is where budgets are kept. There is at least one claim in every call, and all keys of a call belong
// to one owner. Every store passes the suite in storetest. A Store is safe for concurrent use.
type Store interface {
	// Admit decides the request with this id against all claims, all or none. The verdicts end with
	// the first claim that rejects; the last one is allowed only if all are. A repeat of an admitted
	// id is admitted and counted once. At is that of an Admission.
	//
	// Beside a Sum there is a Lease, or else a Log: that remembers the admission until Finish.
	Admit(ctx context.Context, id string, claims []Claim) (verdicts []Verdict, at int64, err error)
	// Peek returns for every claim what a request that takes 1 would find, and writes nothing.
	Peek(ctx context.Context, claims []Claim) ([]Verdict, error)
	// Finish ends an admitted request, of which used[i] of claim i stays taken: of a Sum an amount, of a
	// Log 0 or all, of a Lease nothing. Nil stands for zeros: as if the request had never come. An
	// admission that is not there, or was finished before, is no error.
	Finish(ctx context.Context, a Admission, used []int) error
	// Renew puts off the end of leases to LeaseTime from now. They may be of several owners. One that is
	// not there is no error.
	Renew(ctx context.Context, leases []Held) error
	// Close closes a Gate for so long, or leaves it where it is closed for longer.
	Close(ctx context.Context, key string, d time.Duration) error
	// Reset forgets what was counted under the keys, in one step.
	Reset(ctx context.Context, keys []string) error
}
