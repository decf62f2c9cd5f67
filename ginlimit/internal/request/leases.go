package request

import (
	"context"
	"sync"
	"time"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
)

// Leases renews the leases of all requests of a limiter that are in progress, every third of a lease. Its
// goroutine lives while there is a lease.
type Leases struct {
	Store  budget.Store
	Failed func(ctx context.Context, message string, err error)

	mu      sync.Mutex
	held    map[budget.Held]int // how many requests hold it
	running bool
}

const renewInterval = budget.LeaseTime / 3

func (l *Leases) hold(leases []budget.Held) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = make(map[budget.Held]int)
	}
	for _, h := range leases {
		l.held[h]++
	}
	if !l.running {
		l.running = true
		go l.renew()
	}
}

func (l *Leases) release(leases []budget.Held) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range leases {
		if l.held[h] > 1 {
			l.held[h]--
		} else {
			delete(l.held, h)
		}
	}
}

// Count is the number of leases that requests hold.
func (l *Leases) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, requests := range l.held {
		n += requests
	}
	return n
}

func (l *Leases) renew() {
	tick := time.NewTicker(renewInterval)
	defer tick.Stop()
	for range tick.C {
		held := l.all()
		if held == nil {
			return
		}
		// Nobody waits for it, so it has the time until the next renewal, not that of a decision. On a Cluster it
		// is one call for every owner.
		ctx, cancel := context.WithTimeout(context.Background(), renewInterval)
		if err := l.Store.Renew(ctx, held); err != nil {
			l.Failed(ctx, "ginlimit: the leases of requests in progress could not be renewed", err)
		}
		cancel()
	}
}

// all returns the leases that are held. If there are none, the goroutine ends, and the next lease starts a
// new one.
func (l *Leases) all() []budget.Held {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.held) == 0 {
		l.running = false
		return nil
	}
	all := make([]budget.Held, 0, len(l.held))
	for h := range l.held {
		all = append(all, h)
	}
	return all
}

// leasesOf are the leases of an admission.
func leasesOf(a budget.Admission) (held []budget.Held) {
	for _, c := range a.Claims {
		if c.Form() == budget.Lease {
			held = append(held, budget.Held{Key: c.Key, ID: a.ID})
		}
	}
	return held
}
