package main

import (
	"context"
	"fmt"
	"io"
)

// result is a row with what was measured of it; cell i of all rows was measured at about one time.
type result struct {
	row
	cells []cell
}

// of is one column of the result; nil gives nothing.
func (r *result) of(column func(cell) float64) spread {
	if r == nil {
		return nil
	}
	s := make(spread, len(r.cells))
	for i, c := range r.cells {
		s[i] = column(c)
	}
	return s
}

func (r *result) rate() spread { return r.of(func(c cell) float64 { return c.rate }) }

// interval is the time between two decisions, in microseconds.
func (r *result) interval() spread { return r.of(func(c cell) float64 { return 1e6 / c.rate }) }

// cpu is what a decision costs both sides together, in microseconds.
func (r *result) cpu() spread { return r.of(func(c cell) float64 { return c.serving + c.asking }) }

// comparison is all that was measured of the rows.
type comparison struct {
	results []*result
	slices  int // cells of a round
}

// compare makes sure of all rows, and measures them. A round has several slices; a slice measures
// each row once, shortly, and each slice begins with another row: what a busy machine does to one
// row it does to all.
func (b *bench) compare(ctx context.Context, all []row, rounds, slices int, progress io.Writer) (comparison, error) {
	c := comparison{slices: slices}
	for _, r := range all {
		if err := b.verify(ctx, r); err != nil {
			return c, fmt.Errorf("%s: %w", r.title(), err)
		}
		c.results = append(c.results, &result{row: r})
	}
	if err := b.control.FlushAll(ctx).Err(); err != nil {
		return c, err
	}
	for _, r := range all {
		if err := b.warm(ctx, r); err != nil {
			return c, fmt.Errorf("%s: warming up: %w", r.title(), err)
		}
	}
	for slice := range rounds * slices {
		for i := range all {
			r := c.results[(i+slice*stride)%len(all)]
			cell, err := b.measure(ctx, r.row)
			if err != nil {
				return c, fmt.Errorf("%s: %w", r.title(), err)
			}
			r.cells = append(r.cells, cell)
		}
		if (slice+1)%slices == 0 {
			fmt.Fprintf(progress, "peers: round %d of %d\n", (slice+1)/slices, rounds)
		}
	}
	return c, nil
}

// find is the result of that limiter in that group, or nil.
func (c comparison) find(group, limiter string, auto bool) *result {
	for _, r := range c.results {
		if r.group == group && r.limiter.name == limiter && r.auto == auto {
			return r
		}
	}
	return nil
}

// bestPeer is the plain peer of that group that decides most, or nil.
func (c comparison) bestPeer(group string) *result {
	var best *result
	for _, r := range c.results {
		if r.group != group || r.auto || r.limiter.ours || r.always() {
			continue
		}
		if best == nil || r.rate().median() > best.rate().median() {
			best = r
		}
	}
	return best
}
