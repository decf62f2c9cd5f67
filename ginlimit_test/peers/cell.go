package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/pprof"
	"slices"
	"syscall"
	"time"
)

// cell is one row measured in one round; what is counted is counted for each decision.
type cell struct {
	rate     float64 // decisions/s
	p50, p99 float64 // µs
	allocs   float64 // in this process: with HTTP, the server's
	heap     float64 // bytes allocated
	wire     float64 // bytes, to Redis and back
	trips    float64 // round trips to Redis
	command  float64 // µs inside the commands, on the server
	serving  float64 // µs of the server's CPU
	asking   float64 // µs of this process's CPU: with HTTP, also the service's and its client's
}

// opened is a row that can be called: by so many workers, until it is closed.
type opened struct {
	workers []decide
	close   func() error
}

func (b *bench) open(r row) (opened, error) {
	if !r.http {
		ask, err := r.limiter.open(b.client(r), r.windows)
		if err != nil {
			return opened{}, err
		}
		return opened{slices.Repeat([]decide{ask}, b.concurrency), func() error { return nil }}, nil
	}
	addr, stop, err := serve(r.limiter, b.client(r), r.windows)
	if err != nil {
		return opened{}, err
	}
	o := opened{close: stop}
	for range b.concurrency {
		browser, err := dialBrowser(addr)
		if err != nil {
			return opened{}, errors.Join(err, o.close())
		}
		o.workers = append(o.workers, browser.get)
		before := o.close
		o.close = func() error { return errors.Join(browser.Close(), before()) }
	}
	return o, nil
}

// warmLimit bounds a warming up.
const warmLimit = 30 * time.Second

// warm lets every user of the row decide once, or as often as fills the window.
func (b *bench) warm(ctx context.Context, r row) (err error) {
	o, err := b.open(r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	users, each := b.usersOf(r), 1
	if r.full {
		each = r.windows[0].limit
	}
	turn := (len(users) + len(o.workers) - 1) / len(o.workers) // so that together they see everybody
	_, err = load{workers: o.workers, users: users, duration: warmLimit, calls: each * turn}.run(ctx)
	return err
}

// measure runs one cell, on the keys that earlier ones left. A verdict that the row must not give is
// an error.
func (b *bench) measure(ctx context.Context, r row) (c cell, err error) {
	o, err := b.open(r)
	if err != nil {
		return cell{}, err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	l := load{workers: o.workers, users: b.usersOf(r), duration: warmLimit, calls: 3}
	if _, err := l.run(ctx); err != nil { // connections, pools
		return cell{}, err
	}
	runtime.GC()

	l.duration, l.calls = b.duration, 0
	before, err := b.spending(ctx)
	if err != nil {
		return cell{}, err
	}
	var t tally
	pprof.Do(ctx, pprof.Labels("row", r.title()), func(ctx context.Context) { t, err = l.run(ctx) })
	if err != nil {
		return cell{}, err
	}
	after, err := b.spending(ctx)
	if err != nil {
		return cell{}, err
	}
	if r.full && t.allowed > 0 || !r.full && t.rejected > 0 {
		return cell{}, fmt.Errorf("%d admitted and %d rejected; more -users or a shorter -duration?", t.allowed, t.rejected)
	}
	return cellOf(r, &t, before, after), nil
}

func cellOf(r row, t *tally, before, after spending) cell {
	n := float64(t.decisions())
	redis := after.redis.minus(before.redis)
	c := cell{
		rate:    n / t.took.Seconds(),
		p50:     microseconds(t.latencies.quantile(0.50)),
		p99:     microseconds(t.latencies.quantile(0.99)),
		allocs:  float64(after.memory.Mallocs-before.memory.Mallocs) / n,
		heap:    float64(after.memory.TotalAlloc-before.memory.TotalAlloc) / n,
		trips:   float64(after.writes-before.writes) / n,
		wire:    redis.netBytes / n,
		serving: redis.cpuUsec / n,
		asking:  microseconds(after.cpu-before.cpu) / n,
	}
	for command, share := range r.limiter.server {
		c.command += share * redis.usec[command] / n
	}
	return c
}

// spending is what the server and this process have spent so far.
type spending struct {
	redis  usage
	memory runtime.MemStats
	cpu    time.Duration
	writes int64
}

func (b *bench) spending(ctx context.Context) (s spending, err error) {
	if s.redis, err = usageOf(ctx, b.control); err != nil {
		return s, err
	}
	runtime.ReadMemStats(&s.memory)
	s.writes = b.writes.Load()
	var ru syscall.Rusage
	if err = syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		return s, fmt.Errorf("getrusage: %w", err)
	}
	s.cpu = time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
	return s, nil
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
