// Package headers tells clients in response headers what is left of their budgets, in the dialects that they
// know: Default, IETF, OpenAI, Anthropic, or one of your own by New. The middleware speaks those that
// ginlimit.WithHeaders names. The package knows nothing of the limiter and can be used alone.
package headers

import (
	"net/http"
	"slices"
	"time"
)

// Unit is what a budget counts.
type Unit string

// The units. Amounts of Spend are millionths of the operator's currency unit.
const (
	Requests   Unit = "requests"
	Tokens     Unit = "tokens"
	Spend      Unit = "spend"
	Concurrent Unit = "concurrent" // requests under way
)

// Budget is what a response says of one budget. The zero value is no budget.
type Budget struct {
	Name      string        // of the window: "minute", "tokens-day", "concurrent"; "" is no budget
	Scope     string        // of a route's own budget; "" is the whole API's
	Unit      Unit          // what Limit and Remaining count
	Window    time.Duration // whole seconds; 0 of Concurrent
	Limit     int           // units per window
	Remaining int           // units left now; never negative
	// Reset is how long it takes until the budget is whole again, if nobody asks meanwhile: the window, since
	// this request is its newest entry. Of the budget that rejected it is the time until a call is admitted.
	Reset time.Duration
	// Asked tells that this request was decided against the budget. Those behind the one that rejects are
	// not asked: of them Remaining and Reset are not known, and 0.
	Asked bool
}

// Response is what a response says of all budgets of its request.
type Response struct {
	// The tightest of each unit: fewest remaining, on a tie the shorter window. The zero Budget where none
	// was asked.
	Requests, Tokens, Spend Budget
	// Rejected is the budget that rejected the request; of its unit it is the one above, too. The zero Budget
	// where the request passes. Its Reset is the exact form of Retry-After, which the middleware sets.
	Rejected Budget
	// Budgets are all budgets of the request, those of limiters before this one first, each shortest window
	// first. It is nil where Default is the only dialect, which does not need it.
	Budgets []Budget
	// Now is the time to which a dialect adds a Reset if it tells a time of day.
	Now time.Time
}

// Dialect is one way to tell budgets in headers. It is immutable and safe for concurrent use.
type Dialect struct {
	names []string                        // canonical
	write func(h http.Header, r Response) // nil: writeDefault, which spares every request a copy
}

// New returns a dialect of your own. Write sets headers, by h.Set: where limiters are stacked it is called
// once for each, with the budgets of all of them so far. Names are all headers that it may set, so that the
// middleware can remove them from an answer on which nothing was decided. It panics if write is nil.
func New(write func(h http.Header, r Response), names ...string) *Dialect {
	if write == nil {
		panic("headers: New: write is nil")
	}
	return &Dialect{write: write, names: canonical(names)}
}

func canonical(names []string) (all []string) {
	for _, name := range names {
		all = append(all, http.CanonicalHeaderKey(name))
	}
	return all
}

// None says nothing. It stands alone.
var None = New(func(http.Header, Response) {})

// Write sets the dialect's headers for a response.
func (d *Dialect) Write(h http.Header, r *Response) {
	if d.write == nil {
		writeDefault(h, r)
		return
	}
	d.write(h, *r)
}

// Remove deletes all headers that the dialect may have set.
func (d *Dialect) Remove(h http.Header) {
	for _, name := range d.names {
		delete(h, name)
	}
}

// Names are the headers that the dialect may set, in canonical form.
func (d *Dialect) Names() []string { return slices.Clone(d.names) }

// Merge returns the budgets of several limiters that one request has passed, in their order. Of two on the
// same window of the same scope the tighter one stands for both.
func Merge(budgets, more []Budget) []Budget {
	for _, b := range more {
		i := slices.IndexFunc(budgets, func(a Budget) bool {
			return a.Scope == b.Scope && a.Unit == b.Unit && a.Window == b.Window
		})
		switch {
		case i < 0:
			budgets = append(budgets, b)
		case b.Asked && (!budgets[i].Asked || b.Remaining < budgets[i].Remaining):
			budgets[i] = b
		}
	}
	return budgets
}

// seconds rounds up, so that nobody comes too early.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
