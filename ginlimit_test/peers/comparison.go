package main

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// result is a row with what was measured of it; cell i of all rows was measured at about one time.
type result struct {
	row
	cells []cell
}

// of is one column of the result; a row that is not there has none.
func (r *result) of(c column) (s spread) {
	if r != nil {
		for _, cell := range r.cells {
			s = append(s, cell[c])
		}
	}
	return s
}

// interval is the time between two decisions, in seconds.
func (r *result) interval() spread {
	return r.of(rate).with(r.of(rate), func(rate, _ float64) float64 { return 1 / rate })
}

// cpu is what a decision costs both sides together, in microseconds.
func (r *result) cpu() spread { return r.of(serving).plus(r.of(asking)) }

// comparison is all that was measured of the rows.
type comparison struct {
	results []*result
	slices  int // cells of a round
}

// compare verifies all rows, and measures them. A round has several slices; a slice measures each row
// once, shortly, and each slice begins with another row: what a busy machine does to one row it does to all.
func (b *bench) compare(ctx context.Context, part string, progress io.Writer) (c comparison, err error) {
	all, slices, err := rows(part, b.options)
	if err != nil {
		return c, err
	}
	c.slices = slices
	for _, r := range all {
		if r.group == groupBaseline || r.limiter.name == noLimiter.name || b.options.rows.MatchString(r.title()) {
			c.results = append(c.results, &result{row: r})
		}
	}
	for _, r := range c.results {
		if err := b.verify(ctx, r.row); err != nil {
			return c, fmt.Errorf("%s: %w", r.title(), err)
		}
	}
	if err := b.control.FlushAll(ctx).Err(); err != nil {
		return c, err
	}
	for _, r := range c.results {
		if err := b.warm(ctx, r.row); err != nil {
			return c, fmt.Errorf("%s: warming up: %w", r.title(), err)
		}
	}
	for slice := range b.rounds * slices {
		for i := range c.results {
			r := c.results[(i+slice*stride)%len(c.results)]
			cell, err := b.measure(ctx, r.row)
			if err != nil {
				return c, fmt.Errorf("%s: %w", r.title(), err)
			}
			r.cells = append(r.cells, cell)
		}
		if (slice+1)%slices == 0 {
			fmt.Fprintf(progress, "peers: %s, round %d of %d\n", part, (slice+1)/slices, b.rounds)
		}
	}
	return c, nil
}

// find is the result of that limiter in that group, or nil.
func (c comparison) find(group string, l limiter, auto bool) *result {
	for _, r := range c.results {
		if r.group == group && r.limiter.name == l.name && r.auto == auto {
			return r
		}
	}
	return nil
}

// bestPeer is the plain peer of that group that decides most, or nil.
func (c comparison) bestPeer(group string) (best *result) {
	for _, peer := range []limiter{redisRate, ululeLimiter, throttledGCRA, ginRateLimit} {
		r := c.find(group, peer, false)
		if best == nil || r.of(rate).median() > best.of(rate).median() {
			best = r
		}
	}
	return best
}

// writeTables writes a table for each group.
func (c comparison) writeTables(w io.Writer) {
	group := ""
	for _, r := range c.results {
		if r.group != group {
			group = r.group
			fmt.Fprintf(w, "\n### %s\n\n| |", group)
			for _, column := range columns {
				fmt.Fprintf(w, " %s |", column.name)
			}
			fmt.Fprintf(w, " rate / PING's |\n|---|%s\n", strings.Repeat("--:|", len(columns)+1))
		}
		fmt.Fprintf(w, "| %s | %s |", r.name(), r.of(rate).each(c.slices).text(0))
		for i := p50; int(i) < len(columns); i++ {
			fmt.Fprintf(w, " %s |", number(r.of(i).median(), columns[i].decimals))
		}
		fmt.Fprintf(w, " %.2f |\n", r.of(rate).over(c.find(groupBaseline, ping, false).of(rate)).median())
	}
}

// ratio is one thing that must be shown. Each side was measured shortly before or after the other.
type ratio struct {
	what   string
	rounds spread
	cpu    spread  // the same of CPU time, which other processes cannot take away: a cross-check
	want   float64 // 0 is the bound of the row above, without an aim of its own
}

func writeRatios(w io.Writer, ratios []ratio) {
	fmt.Fprint(w, "\n### Ratios\n\n"+
		"| ratio, above 1 is better | by time (range) | aim | | by CPU time (range) |\n|---|---|---|---|---|\n")
	for _, r := range ratios {
		want, verdict := fmt.Sprintf("%.2f", r.want), "met"
		switch short := 100 * (1 - r.rounds.median()/r.want); {
		case len(r.rounds) == 0:
			verdict = "not measured"
		case r.want == 0:
			want, verdict = "–", "its bound"
		case short > 0:
			verdict = fmt.Sprintf("**missed by %.0f %%**", short)
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", r.what, r.rounds.text(3), want, verdict, r.cpu.text(3))
	}
}

// ratios are those of decisions and of HTTP.
func (c comparison) ratios() []ratio {
	one, two, web := c.bestPeer(groupOne), c.bestPeer(groupTwo), c.bestPeer(groupHTTP)
	full := c.bestPeer(groupRejected)
	none := c.find(groupHTTP, noLimiter, false)
	ours, alone := c.find(groupOne, ginlimitSeparate, false), c.find(groupOne, ginlimitAlone, false)
	rates := func(what string, a, b *result, want float64) ratio {
		return ratio{what, a.of(rate).over(b.of(rate)).each(c.slices), b.cpu().over(a.cpu()).each(c.slices), want}
	}
	waits := func(what string, of column, a, b *result, want float64) ratio {
		return ratio{what, a.of(of).over(b.of(of)).each(c.slices), nil, want}
	}
	added := func(what string, a, b *result, want float64) ratio {
		interval := a.interval().minus(none.interval()).over(b.interval().minus(none.interval()))
		cpu := a.cpu().minus(none.cpu()).over(b.cpu().minus(none.cpu()))
		return ratio{what, interval.each(c.slices), cpu.each(c.slices), want}
	}
	return []ratio{
		rates("one window, decisions/s: ours / best peer, plain client"+named(one), ours, one, 1.6),
		rates("one window, decisions/s: ours / redis_rate over AutoPipeline",
			ours, c.find(groupOne, redisRate, true), 1.1),
		rates("one window, decisions/s: ours / PING of the same client",
			ours, c.find(groupBaseline, ping, false), 1.0),
		rates("one window, decisions/s: ours / ours, one by one", ours, alone, 1.25),
		rates("two windows, decisions/s: ours, atomic / best peer, plain client"+named(two),
			c.find(groupTwo, ginlimitAtomic, false), two, 2.5),
		added("HTTP, two windows, added time: best peer, plain client"+named(web)+" / ours, atomic",
			web, c.find(groupHTTP, ginlimitAtomic, false), 2.2),
		waits("one window, a lone caller, p50: ours, one by one / ours", p50,
			c.find(groupLone, ginlimitAlone, false), c.find(groupLone, ginlimitSeparate, false), 0.95),
		waits("one window, p99: ours, one by one / ours", p99, alone, ours, 1.0),
		rates("rejected, one window, decisions/s: ours, rejection cache / best peer, plain client"+named(full),
			c.find(groupRejected, ginlimitCached, false), full, 20),
	}
}

func named(r *result) string {
	if r == nil {
		return ""
	}
	return " (" + r.limiter.name + ")"
}
