// Package headers writes response headers that tell clients what is left of their budgets, in several
// dialects: Default, IETF, OpenAI, Anthropic, or your own by New. The middleware writes the dialects given to
// ginlimit.WithHeaders. The package does not depend on the limiter and can be used alone.
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
	Concurrent Unit = "concurrent" // requests in progress
)

// Budget is what a response says about one budget. The zero value is no budget.
type Budget struct {
	Name      string        // of the window: "minute", "tokens-day", "concurrent"; "" is no budget
	Scope     string        // of a route's own budget; "" is the whole API's
	Unit      Unit          // what Limit and Remaining count
	Window    time.Duration // whole seconds; 0 for Concurrent
	Limit     int           // units per window
	Remaining int           // units left now; never negative
	// Reset is the time until the budget is full again, if no request comes meanwhile: the window, because this
	// request is its newest entry. For the budget that rejected it is the time until a call is admitted.
	Reset time.Duration
	// Asked means that this request was decided on the budget. Budgets after the one that rejects are not
	// decided: their Remaining and Reset are not known, and 0.
	Asked bool
}

// Response is what a response says about all budgets of its request.
type Response struct {
	// The tightest budget of each unit: the fewest remaining, on a tie the shorter window. The zero Budget if
	// none was decided.
	Requests, Tokens, Spend Budget
	// Rejected is the budget that rejected the request, or the zero Budget if the request passes. It is also the
	// budget of its unit above. Its Reset is the exact form of Retry-After, which the middleware sets.
	Rejected Budget
	// Budgets are all budgets of the request, those of earlier limiters first, each shortest window first. It is
	// nil if Default is the only dialect, which does not need it.
	Budgets []Budget
	// Now is the time to which a dialect adds a Reset to get a time of day.
	Now time.Time
}

// Dialect is one way to write budgets in headers. It is immutable and safe for concurrent use.
type Dialect struct {
	names []string                        // canonical
	write func(h http.Header, r Response) // nil: writeDefault, which spares every request a copy
}

// New returns your own dialect. write sets headers, by h.Set: with stacked limiters it is called once for
// each, with the budgets of all of them so far. names are all headers that it may set, so that the middleware
// can remove them from an answer without a decision; of each it sends only the first value. New panics if
// write is nil.
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

// None writes no headers. It cannot be combined with other dialects.
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

// KeepFirst leaves the first value of each header that the dialect may have set. Others were added later, for
// example by a reverse proxy.
func (d *Dialect) KeepFirst(h http.Header) {
	for _, name := range d.names {
		if values := h[name]; len(values) > 1 {
			h[name] = values[:1:1]
		}
	}
}

// Names are the headers that the dialect may set, in canonical form.
func (d *Dialect) Names() []string { return slices.Clone(d.names) }

// Merge returns the budgets of several limiters that one request has passed, in their order. If two are on
// the same window of the same scope, it keeps the tighter one.
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
