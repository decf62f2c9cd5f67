package main

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// column is one thing that is measured of a row, for each decision.
type column int

const (
	rate    column = iota
	p50            // ms
	p99            // ms
	allocs         // in this process: with HTTP, the server's
	heap           // bytes allocated
	trips          // round trips to Redis
	wire           // bytes, to Redis and back
	command        // µs inside the commands, on the server
	serving        // µs of the server's CPU
	asking         // µs of this process's CPU: with HTTP, also the service's and its client's
)

var columns = []struct {
	name     string
	decimals int
}{
	{"decisions/s (range)", 0}, {"p50 ms", 2}, {"p99 ms", 2}, {"allocs", 1}, {"B allocated", 0},
	{"round trips", 3}, {"B to and from Redis", 0}, {"µs in Redis commands", 2}, {"µs of Redis CPU", 2},
	{"µs of CPU here", 2},
}

// cell is one row measured once, by column.
type cell []float64

// measure runs one cell, on the keys that earlier ones left or on logs made anew. A verdict that the row must
// not give is an error.
func (b *bench) measure(ctx context.Context, r row) (c cell, err error) {
	return c, b.with(r, func(l *load) error {
		if r.remade() {
			if err := b.refill(ctx, r); err != nil {
				return err
			}
		} else if _, err := l.run(ctx, warmLimit, 3); err != nil { // connections, pools
			return err
		}
		runtime.GC()
		l.reset()
		before, err := b.spent(ctx)
		if err != nil {
			return err
		}
		var t tally
		if r.visits == 0 {
			t, err = l.run(ctx, b.duration, 0)
		}
		for visit := 0; visit < r.visits && err == nil; visit++ {
			var of tally
			of, err = l.run(context.WithValue(ctx, visitKey{}, visit), warmLimit, l.turn())
			t = t.plus(of)
		}
		if err != nil {
			return err
		}
		after, err := b.spent(ctx)
		if err == nil && (r.full && t.allowed > 0 || !r.full && t.rejected > 0) {
			err = fmt.Errorf("%d admitted and %d rejected; more -users or a shorter -duration?", t.allowed, t.rejected)
		}
		c = cellOf(r, l, t, after.minus(before))
		return err
	})
}

func cellOf(r row, l *load, t tally, s spending) cell {
	n, latencies := float64(t.allowed+t.rejected), l.all()
	var usec float64
	for command, share := range r.limiter.commands {
		usec += share * s["cmdstat_"+command]
	}
	return cell{
		rate:    n / t.took.Seconds(),
		p50:     float64(latencies.ValueAtQuantile(50)) / 1e6,
		p99:     float64(latencies.ValueAtQuantile(99)) / 1e6,
		allocs:  s["mallocs"] / n,
		heap:    s["heap"] / n,
		trips:   s["total_reads_processed"] / n,
		wire:    (s["total_net_input_bytes"] + s["total_net_output_bytes"]) / n,
		command: usec / n,
		serving: 1e6 * (s["used_cpu_sys_main_thread"] + s["used_cpu_user_main_thread"]) / n,
		asking:  s["cpu"] / n,
	}
}

// spending is what the server, by the names of INFO, and this process have spent since they started. A
// command has the µs inside it, from clients and from scripts alike. Asking the server is in the next answer,
// not in this one, but for one read.
type spending map[string]float64

func (b *bench) spent(ctx context.Context) (spending, error) {
	info, err := b.control.InfoMap(ctx, "commandstats", "cpu", "stats").Result()
	if err != nil {
		return nil, fmt.Errorf("info: %w", err)
	}
	s := spending{}
	for _, section := range info {
		for name, value := range section {
			if stats, ok := strings.CutPrefix(value, "calls="); ok {
				_, value, _ = strings.Cut(stats, "usec=")
				value, _, _ = strings.Cut(value, ",")
			}
			s[name], _ = strconv.ParseFloat(value, 64)
		}
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	s["mallocs"], s["heap"] = float64(memory.Mallocs), float64(memory.TotalAlloc)
	var ru syscall.Rusage
	err = syscall.Getrusage(syscall.RUSAGE_SELF, &ru)
	s["cpu"] = float64(ru.Utime.Nano()+ru.Stime.Nano()) / 1e3
	return s, err
}

// minus is what was spent since before.
func (s spending) minus(before spending) spending {
	d := maps.Clone(s)
	for name, v := range before {
		d[name] -= v
	}
	return d
}
