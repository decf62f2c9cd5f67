package ginlimit

import (
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/tiers"
)

// Usage is what a request uses beside itself: tokens, and money in millionths of the operator's currency
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

// Estimator returns the most that a request will use, before the handler runs. It runs on the request's
// goroutine, after the resolver, and only if the request meets a budget of tokens or money. The estimate is
// reserved; where tokens have a budget, at least 1 token. An error is answered with 400, code
// "invalid_request"; its text goes to the log and never to the client.
//
// If an Estimator also has the method EstimateWithin(c *gin.Context, most Usage) (Usage, error), that is
// called instead. Most is three quarters of the smallest budget of each kind, or 0 if there is none. It
// bounds the reservation for a declared limit, such as max_tokens, so that one request cannot lock out all
// others.
type Estimator interface {
	Estimate(c *gin.Context) (Usage, error)
}

// EstimatorFunc makes an Estimator of a function.
type EstimatorFunc func(c *gin.Context) (Usage, error)

// Estimate calls f.
func (f EstimatorFunc) Estimate(c *gin.Context) (Usage, error) { return f(c) }

// Admission is a request that limiters have admitted. Its methods only record. After the handler has
// returned, even after a panic or if the client has left, one call to Redis does what was recorded last. If
// nothing was recorded, the reservation stays taken. After that the methods do nothing. They are safe for
// concurrent use.
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

// AdmissionFrom returns the admission of the request. It is never nil. If no limiter ran before, its methods
// do nothing.
func AdmissionFrom(c *gin.Context) *Admission {
	if r := requestIn(c); r != nil {
		return &r.admission
	}
	return &Admission{}
}

// Settle records what the request has really used, for every limiter that it passed. The unused part of the
// reservation is given back. Usage above it is taken, too, so a budget may be overdrawn. A negative number
// counts as 0, a number above 2^53 as 2^53.
func (a *Admission) Settle(u Usage) {
	a.record(saidUsage, u.bounded())
}

// Refund records that the request costs nothing: its place in the windows of requests is given back, too.
// Bounded windows get it back only if the handler returns within the length of the tier's shortest window.
// They get it back at any time if the limiter has WithRefundOn, or the tier has tokens, money or concurrent.
func (a *Admission) Refund() { a.record(saidRefund, Usage{}) }

// Recorded returns what was recorded last: settled, and with which usage, or refunded. It is for logs and for
// tests of handlers.
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

// over reports whether the request's handlers have returned or panicked.
func (a *Admission) over() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ended
}

// end returns what was recorded last.
func (a *Admission) end() (word, Usage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	return a.word, a.usage
}
