package budget

import (
	"context"
	"time"
)

// Claim is one request's part in one budget of one owner.
type Claim struct {
	Key string
	Budget
	Cost int // what the request takes: of a Sum 0 or more, of a Log 1 or more (0 means 1), of a Lease 1
}

// Entries is how many entries of a Log a claim takes.
func (c Claim) Entries() int { return max(1, c.Cost) }

// Verdict is a store's decision on one claim.
type Verdict struct {
	Used       int           // with this request if it was admitted
	RetryAfter time.Duration // whole milliseconds, 1 ms to the window, if it was rejected; otherwise 0
	Allowed    bool
	TooLarge   bool // the cost is above the whole limit: it will never pass, and RetryAfter is 0
}

// Remaining is what is left of a budget, never negative.
func (v Verdict) Remaining(limit int) int { return max(0, max(0, limit)-v.Used) }

const (
	// LeaseTime is how long the lease of a request in progress lasts without being renewed.
	LeaseTime = 15 * time.Second
	// Busy is RetryAfter if too many requests are in progress: one may end at any time.
	Busy = time.Second
	// Forget is how long after its LeaseTime a request may still be finished.
	Forget = 5 * time.Minute
	// Slices is into how many parts a Sum divides a window.
	Slices = 60
)

// Admission is an admitted request, for Finish.
type Admission struct {
	ID     string
	At     int64 // by the store's clock, in Unix milliseconds; 0 if all claims are logs
	Claims []Claim
}

// Held is a lease of a request in progress.
type Held struct{ Key, ID string }

// Store keeps budgets. Every call has at least one claim, and all keys of a call are on one server, on a
// Cluster in one slot. Every store passes the suite in storetest. A Store is safe for concurrent use.
type Store interface {
	// Admit decides the request with this id on all claims, all or none. The verdicts end with the first claim
	// that rejects; the last verdict is allowed only if all are. A repeat of an admitted id is admitted and
	// counted once. at is for Admission.At.
	//
	// If there is a Sum, there must also be a Lease or a Log, which remembers the admission until Finish.
	Admit(ctx context.Context, id string, claims []Claim) (verdicts []Verdict, at int64, err error)
	// Peek returns for every claim what a request that takes 1 would find, and writes nothing.
	Peek(ctx context.Context, claims []Claim) ([]Verdict, error)
	// Finish ends an admitted request. used[i] is what stays taken of claim i: of a Sum an amount, of a Log 0 or
	// all, of a Lease nothing. nil means zeros, as if the request had never come. An admission that does not
	// exist, or was finished before, is not an error.
	Finish(ctx context.Context, a Admission, used []int) error
	// Renew extends leases to LeaseTime from now. They may belong to several owners. A lease that does not exist
	// is not an error.
	Renew(ctx context.Context, leases []Held) error
	// Close closes a Gate for d. If it is closed for longer already, it stays so.
	Close(ctx context.Context, key string, d time.Duration) error
	// Reset deletes what was counted under the keys, in one step.
	Reset(ctx context.Context, keys []string) error
}
