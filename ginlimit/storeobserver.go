package ginlimit

import (
	"context"
	"time"

	"github.com/gin-tiers/ratelimit/tiers"
)

// StoreCall is how long the store took to decide a request, in one call or several, including giving back
// after an error.
type StoreCall struct {
	Route string // as in Event
	Took  time.Duration
	Err   error // if it could not decide
}

// StoreObserver is an interface that an Observer may also implement. It gets the store's part of every
// decision, before the Event. Without a StoreObserver no time is measured.
type StoreObserver interface {
	ObserveStore(ctx context.Context, c StoreCall)
}

// Settlement is what happened to the tokens and the money that a request had reserved. It names no user.
type Settlement struct {
	Route    string     // as in Event
	Tier     tiers.Tier // as in Event
	Reserved Usage
	Used     Usage // what stays taken: Reserved if nobody has settled, zero after a refund
}

// SettlementObserver is an interface that an Observer may also implement. It gets every reservation once,
// after the handler has returned. The context may have ended by then.
type SettlementObserver interface {
	ObserveSettlement(ctx context.Context, s Settlement)
}

// observers are an Observer and the further interfaces that it implements, or nil.
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

// begin is when a call to the store begins, if that is observed.
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

// tellSettled reports what happened to all reservations.
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
