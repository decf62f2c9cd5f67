package ginlimit

import (
	"context"
	"time"

	"github.com/gin-tiers/ratelimit/tiers"
)

// StoreCall is how long the store took to decide a request, in one call or several, giving back after an
// error included.
type StoreCall struct {
	Route string // as in Event
	Took  time.Duration
	Err   error // where it could not decide
}

// StoreObserver is what an Observer may also be: it is told of the store's part in every decision, before
// the Event. Where no Observer is one, no time is taken.
type StoreObserver interface {
	ObserveStore(ctx context.Context, c StoreCall)
}

// Settlement is what became of the tokens and the money that a request had reserved. It names no user.
type Settlement struct {
	Route    string     // as in Event
	Tier     tiers.Tier // as in Event
	Reserved Usage
	Used     Usage // what stays taken: as reserved where nobody has settled; zero where it was refunded
}

// SettlementObserver is what an Observer may also be: it is told of every reservation once, when the handler
// has returned. Its context may have ended by then.
type SettlementObserver interface {
	ObserveSettlement(ctx context.Context, s Settlement)
}

// observers are an Observer and what else it is; nil where it is not.
type observers struct {
	each    Observer
	calls   StoreObserver
	settled SettlementObserver
}

func newObservers(o Observer) observers {
	calls, _ := o.(StoreObserver)
	settled, _ := o.(SettlementObserver)
	return observers{o, calls, settled}
}

// begin is when a call to the store begins, if anybody wants to know.
func (o observers) begin() (began time.Time) {
	if o.calls != nil {
		began = time.Now()
	}
	return began
}

func (o observers) store(ctx context.Context, route string, began time.Time, err error) {
	if o.calls != nil {
		o.calls.ObserveStore(ctx, StoreCall{Route: route, Took: time.Since(began), Err: err})
	}
}

// reservation is what a request has reserved at one mount.
type reservation struct {
	observer SettlementObserver
	Settlement
}

// tellSettled tells what became of all reservations.
func (r *requestOn) tellSettled(ctx context.Context) {
	if r.after == nil {
		return
	}
	for _, reserved := range r.after.reservations {
		if usage, settled, refunded := r.admission.Recorded(); settled || refunded {
			reserved.Used = usage
		}
		reserved.observer.ObserveSettlement(ctx, reserved.Settlement)
	}
	r.after.reservations = nil
}
