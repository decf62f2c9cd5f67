package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// point is a place on an axis along which cost might grow.
type point struct {
	axis        string
	n           int
	users       int
	entries     int // in each user's log at first
	concurrency int
	auto        bool
	cells       result
}

// The axes of growth.
const (
	axisUsers   = "users"
	axisEntries = "entries in each log"
	axisCallers = "goroutines"
)

// allEntries is how many entries all logs of a point have together, if they are few in each.
const allEntries = 200_000

// points are the axes up to most users and entries.
func points(most int) []*point {
	var all []*point
	for n := 10; n <= most; n *= 10 {
		all = append(all, &point{axis: axisUsers, n: n, users: n, entries: 5, concurrency: 64, auto: true})
	}
	for _, n := range []int{5, 60, 600, 5_000, 100_000} {
		if n <= most {
			all = append(all, &point{axis: axisEntries, n: n, users: max(2, min(10_000, allEntries/n)), entries: n, concurrency: 64, auto: true})
		}
	}
	for _, auto := range []bool{false, true} {
		for n := 1; n <= 1024; n *= 4 {
			all = append(all, &point{axis: axisCallers, n: n, users: min(most, 10_000), entries: 5, concurrency: n, auto: auto})
		}
	}
	return all
}

// endless is a window that nothing leaves and nobody fills.
var endless = window{math.MaxInt32, 24 * time.Hour}

// runGrowth measures one decision of ours at every point, in turn, and the memory of a log. Users and
// entries are asked for over AutoPipeline, where the script is the larger part of a decision.
func (o options) runGrowth(ctx context.Context, tb testing.TB, srv *redistest.Server, w io.Writer) error {
	b, err := newBench(tb, srv, o)
	if err != nil {
		return err
	}
	p, err := dialPump(srv.Addr)
	if err != nil {
		return err
	}
	defer p.Close()
	all := points(o.growth)
	for round := range o.rounds {
		for i := range all {
			at := all[(i+round*len(all)/o.rounds)%len(all)]
			c, err := b.at(ctx, p, at)
			if err != nil {
				return fmt.Errorf("%s %d: %w", at.axis, at.n, err)
			}
			at.cells.cells = append(at.cells.cells, c)
		}
	}
	for _, axis := range []string{axisUsers, axisEntries, axisCallers} {
		writeAxis(w, slices.DeleteFunc(slices.Clone(all), func(at *point) bool { return at.axis != axis }))
	}
	return writeMemory(ctx, w, b.control, p, o.growth)
}

// at measures one decision at that point, on logs made anew.
func (b *bench) at(ctx context.Context, p *pump, at *point) (cell, error) {
	if err := b.control.FlushAll(ctx).Err(); err != nil {
		return cell{}, err
	}
	here := *b
	here.users, here.concurrency = at.users, at.concurrency
	r := row{limiter: ginlimitSeparate, windows: []window{endless}, auto: at.auto}
	for _, user := range here.usersOf(r) {
		key := "ratelimit:" + user + ":" + strconv.Itoa(int(endless.length/time.Second))
		if err := p.fillLog(key, at.entries, time.Now(), endless.length); err != nil {
			return cell{}, err
		}
	}
	return here.measure(ctx, r)
}

func writeAxis(w io.Writer, axis []*point) {
	fmt.Fprintf(w, "\n### One decision, by %s\n\n", axis[0].axis)
	fmt.Fprintf(w, "| %s | decisions/s (range) | p50 ms | p99 ms | µs in Redis commands (range) | µs of CPU, both sides (range) | times the first | log N / log of the first | allocs |\n", axis[0].axis)
	fmt.Fprintln(w, "|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	first := axis[0]
	for _, at := range axis {
		if at.auto != first.auto {
			first = at
		}
		name := thousands(float64(at.n))
		if at.axis == axisCallers && at.auto {
			name += ", AutoPipeline"
		}
		logs := "–"
		if first.n > 1 {
			logs = fmt.Sprintf("%.2f", math.Log(float64(at.n))/math.Log(float64(first.n)))
		}
		of, rate, cpu := at.cells.of, at.cells.rate(), at.cells.cpu()
		fmt.Fprintf(w, "| %s | %s (%s–%s) | %.2f | %.2f | %s | %s | %.2f | %s | %.1f |\n", name,
			thousands(rate.median()), thousands(rate.min()), thousands(rate.max()),
			of(func(c cell) float64 { return c.p50 / 1e3 }).median(), of(func(c cell) float64 { return c.p99 / 1e3 }).median(),
			of(func(c cell) float64 { return c.command }).text("%.2f"),
			cpu.text("%.1f"), cpu.over(first.cells.cpu()).median(), logs, of(func(c cell) float64 { return c.allocs }).median())
	}
}
