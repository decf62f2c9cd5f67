package ginlimit

import (
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/tiers"
)

// Usage is what a request takes beside itself: tokens, and money in millionths of the operator's currency
// unit. The zero value is nothing.
type Usage struct {
	Tokens int
	Spend  tiers.Money
}

// maxAmount is the largest number that stores count to the unit.
const maxAmount = 1 << 53

// bounded returns a usage that stores can count.
func (u Usage) bounded() Usage {
	return Usage{max(0, min(u.Tokens, maxAmount)), max(0, min(u.Spend, maxAmount))}
}

// Estimator tells what a request will take at most, before the handler runs. It runs on the request's
// goroutine, after the resolver, and only for tiers that have a number of tokens or money. What it estimates
// is reserved; a request with a token budget takes 1 at least. An error is answered with 400, code
// "invalid_request"; its text goes to the log and never to the client.
//
// An Estimator that also has the method EstimateWithin(c *gin.Context, most Usage) (Usage, error) is asked by
// that. Most is a quarter of the tier's smallest budget of each kind, and 0 where the tier has none. It
// bounds what is reserved for a declared limit, such as max_tokens, so that one request cannot lock out all
// others.
type Estimator interface {
	Estimate(c *gin.Context) (Usage, error)
}

// EstimatorFunc is a function that is an Estimator.
type EstimatorFunc func(c *gin.Context) (Usage, error)

// Estimate calls f.
func (f EstimatorFunc) Estimate(c *gin.Context) (Usage, error) { return f(c) }

// Admission is a request that limiters have let pass. Its methods only record. When the handler has returned,
// also after a panic or when the client has left, one call to Redis does what was recorded last. If nothing
// was recorded, the reservation stands. Afterwards the methods do nothing. They are safe for concurrent use.
type Admission struct {
	mu    sync.Mutex
	ended bool
	word  word
	usage Usage
}

// word is what a handler has recorded for a request.
type word uint8

const (
	saidNothing word = iota
	saidUsage
	saidRefund
)

// AdmissionFrom returns the admission of the request. It is never nil; where no limiter stands before, its
// methods do nothing.
func AdmissionFrom(c *gin.Context) *Admission {
	if r := requestIn(c); r != nil {
		return &r.admission
	}
	return &Admission{}
}

// Settle records what the request has really used, for every limiter that it passed. What it did not use of
// the reservation goes back; what it used above is taken too, so that a budget may be in debt. A negative
// number counts as 0, one above 2^53 as that.
func (a *Admission) Settle(u Usage) {
	a.record(saidUsage, u.bounded())
}

// Refund records that the request shall have cost nothing: its place in the windows of requests goes back
// too. Of bounded windows it does so within the length of the tier's shortest window, or, where the limiter
// has WithRefundOn or the tier has tokens, money or requests under way, whenever the handler returns.
func (a *Admission) Refund() { a.record(saidRefund, Usage{}) }

// Recorded returns what was recorded last: whether the request was settled, and with what, or refunded. It is
// for logs and for tests of handlers.
func (a *Admission) Recorded() (u Usage, settled, refunded bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.usage, a.word == saidUsage, a.word == saidRefund
}

func (a *Admission) record(w word, u Usage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.ended {
		a.word, a.usage = w, u
	}
}

// end returns what was recorded last.
func (a *Admission) end() (word, Usage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	return a.word, a.usage
}
