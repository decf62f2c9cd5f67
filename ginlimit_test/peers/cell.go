package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
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
	{"decisions/s (range)", 0}, {"p50 ms", 3}, {"p99 ms", 2}, {"allocs", 1}, {"B allocated", 0},
	{"round trips", 3}, {"B to and from Redis", 0}, {"µs in Redis commands", 2}, {"µs of Redis CPU", 2},
	{"µs of CPU here", 2},
}

// cell is one row measured once, by column. What cannot be told is NaN.
type cell []float64

// cpu is what a decision costs both sides together, in µs.
func (c cell) cpu() float64 { return c[serving] + c[asking] }

// measure runs one cell of a row, on the keys that earlier ones left or on logs made anew; or one of each of
// several rows that are asked in turn. A verdict that a row must not give is an error.
func (b *bench) measure(ctx context.Context, rows ...row) (cells []cell, err error) {
	first := rows[0]
	lanes := make([][]*caller, 0, b.concurrency)
	for i, r := range rows {
		callers, stop := b.open(r)
		defer stop()
		if i == 0 {
			lanes = inParallel(callers)
		} else {
			lanes[0] = append(lanes[0], callers...)
		}
	}
	if first.remade() {
		err = b.refill(ctx, first)
	} else if first.full { // what a cache knows it has learned
		_, err = run(ctx, lanes, 1, warmLimit, &verdict{})
	} else { // connections, pools
		_, err = run(ctx, lanes, forever, b.duration/10, nil)
	}
	if err != nil {
		return nil, err
	}
	for _, lane := range lanes {
		for _, c := range lane {
			c.latencies.Reset()
		}
	}
	runtime.GC()
	before, err := b.spent(ctx)
	if err != nil {
		return nil, err
	}
	visits, lasts := forever, b.duration
	if first.visits > 0 {
		visits, lasts = first.visits, warmLimit
	}
	took, err := run(ctx, lanes, visits, lasts, &verdict{allowed: !first.full})
	if err != nil {
		return nil, err
	}
	after, err := b.spent(ctx)
	if len(rows) == 1 {
		return []cell{cellOf(first, lanes, took, after.minus(before))}, err
	}
	for i := range rows {
		h := lanes[0][i].latencies
		c := cell{1e9 / h.Mean(), milliseconds(h, 50), milliseconds(h, 99)}
		for len(c) < len(columns) {
			c = append(c, math.NaN()) // it was spent on all of them
		}
		cells = append(cells, c)
	}
	return cells, err
}

func milliseconds(h *hdrhistogram.Histogram, quantile float64) float64 {
	return float64(h.ValueAtQuantile(quantile)) / 1e6
}

func cellOf(r row, lanes [][]*caller, took time.Duration, s spending) cell {
	all := lanes[0][0].latencies
	for _, lane := range lanes[1:] {
		all.Merge(lane[0].latencies)
	}
	n, usec := float64(all.TotalCount()), 0.0
	for command, share := range r.limiter.commands {
		usec += share * s["cmdstat_"+command]
	}
	return cell{
		rate:    n / took.Seconds(),
		p50:     milliseconds(all, 50),
		p99:     milliseconds(all, 99),
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
