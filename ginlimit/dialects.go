package ginlimit

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-tiers/ratelimit/ginlimit/headers"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/request"
)

// WithHeaders sets the dialects of the budget headers; a response has the headers of all of them. The default
// is headers.Default alone. headers.None must be the only one: its mount sets no such headers, and the
// headers of other mounts leave its budgets out. A rejection has Retry-After and X-Should-Retry in every
// dialect.
//
// With stacked limiters, each dialect covers the budgets of all limiters that the request has met. A dialect
// other than Default costs some allocations per request. WithHeaders panics on nil, on no dialect at all, and
// on None beside others.
func WithHeaders(dialects ...*headers.Dialect) Option {
	if len(dialects) == 0 {
		panic("ginlimit: WithHeaders: no dialect; headers.None says nothing")
	}
	for _, d := range dialects {
		mustNotBeNil("WithHeaders: dialect", d)
		if d == headers.None && len(dialects) > 1 {
			panic("ginlimit: WithHeaders: headers.None stands alone")
		}
	}
	return func(o *options) { o.dialects = slices.Clone(dialects) }
}

// WithExposedHeaders adds the headers that the middleware sets to Access-Control-Expose-Headers, so that
// scripts in browsers can read them across origins. Mount the limiter after the CORS middleware; otherwise
// that overwrites the list.
func WithExposedHeaders() Option { return func(o *options) { o.expose = true } }

// dialects are the dialects of one mount.
type dialects struct {
	all     []*headers.Dialect
	exposed []string
}

func newDialects(o options) dialects {
	d := dialects{all: o.dialects}
	if d.all == nil {
		d.all = []*headers.Dialect{headers.Default}
	}
	if o.expose {
		for _, each := range d.all {
			for _, name := range each.Names() {
				if !slices.Contains(d.exposed, name) {
					d.exposed = append(d.exposed, name)
				}
			}
		}
		d.exposed = append(d.exposed, HeaderRetryAfter, HeaderShouldRetry)
		if o.shadow {
			d.exposed = append(d.exposed, HeaderShadow)
		}
	}
	return d
}

// silent reports whether the mount sets no budget headers.
func (d *dialects) silent() bool { return d.all[0] == headers.None }

// expose adds the mount's headers to those that are exposed already.
func (d *dialects) expose(h http.Header) {
	const name = "Access-Control-Expose-Headers"
	if len(d.exposed) == 0 {
		return
	}
	list := h.Values(name)
	there := strings.Split(strings.Join(list, ","), ",")
	for i := range there {
		there[i] = http.CanonicalHeaderKey(strings.TrimSpace(there[i]))
	}
	for _, each := range d.exposed {
		if !slices.Contains(there, each) {
			list = append(list[:len(list):len(list)], each)
		}
	}
	h.Set(name, strings.Join(list, ", "))
}

// speak adds the dialects of a mount to those that the request has met.
func (r *requestOn) speak(d *dialects) {
	switch {
	case d.silent():
	case r.dialects == nil:
		r.dialects = d
	default:
		both := dialects{all: slices.Clone(r.dialects.all)}
		for _, each := range d.all {
			if !slices.Contains(both.all, each) {
				both.all = append(both.all, each)
			}
		}
		r.dialects = &both
	}
}

// tell sets the headers of all limiters that the request has met so far. Rejected is the rejection, or nil.
func (r *requestOn) tell(h http.Header, rejected *request.Rejection, now func() time.Time) {
	if rejected != nil {
		for i := range r.Found {
			r.Found[i].GivenBack = true
		}
	}
	var said headers.Response
	tightest := request.TightestOf(r.Found)
	tightest.Tell(&said)
	if len(r.dialects.all) != 1 || r.dialects.all[0] != headers.Default { // that needs no more
		for i := range r.Found {
			said.Budgets = headers.Merge(said.Budgets, r.Found[i].Budgets())
		}
		said.Now = now()
	}
	if rejected != nil {
		said.Rejected = rejected.Claim.Told(rejected.Verdict)
		switch said.Rejected.Unit {
		case headers.Requests:
			said.Requests = said.Rejected
		case headers.Tokens:
			said.Tokens = said.Rejected
		case headers.Spend:
			said.Spend = said.Rejected
		}
	}
	for _, d := range r.dialects.all {
		d.Write(h, &said)
	}
}

// hush removes the headers of all limiters that the request has met so far.
func (r *requestOn) hush(h http.Header) {
	if r.dialects != nil {
		for _, d := range r.dialects.all {
			d.Remove(h)
		}
	}
	h.Del(HeaderShadow)
}
