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
	var turns [][]*result // those of one turn are asked in turn
	for _, r := range all {
		if r.group != groupBaseline && r.limiter.name != noLimiter.name && !b.options.rows.MatchString(r.title()) {
			continue
		}
		one := &result{row: r}
		c.results = append(c.results, one)
		if last := len(turns) - 1; r.inTurn && turns[last][0].inTurn {
			turns[last] = append(turns[last], one)
		} else {
			turns = append(turns, []*result{one})
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
		if r.remade() {
			continue
		}
		if err := b.warm(ctx, r.row); err != nil {
			return c, fmt.Errorf("%s: warming up: %w", r.title(), err)
		}
	}
	for slice := range b.rounds * slices {
		for i := range turns {
			turn := turns[(i+slice*stride)%len(turns)]
			var rows []row
			for _, r := range turn {
				rows = append(rows, r.row)
			}
			cells, err := b.measure(ctx, rows...)
			if err != nil {
				return c, fmt.Errorf("%s: %w", turn[0].title(), err)
			}
			for i, r := range turn {
				r.cells = append(r.cells, cells[i])
			}
		}
		if (slice+1)%slices == 0 {
			fmt.Fprintf(progress, "peers: %s, round %d of %d\n", part, (slice+1)/slices, b.rounds)
		}
	}
	return c, nil
}

// find is the result of that limiter in that group, or nil.
func (c comparison) find(group string, l limiter, over client) *result {
	for _, r := range c.results {
		if r.group == group && r.limiter.name == l.name && r.client == over {
			return r
		}
	}
	return nil
}

// bestPeer is the plain peer of that group that decides most, or nil.
func (c comparison) bestPeer(group string) (best *result) {
	most := 0.0
	for _, peer := range []limiter{redisRate, ululeLimiter, throttledGCRA, ginRateLimit} {
		r := c.find(group, peer, plain)
		if median := c.rounds(of(rate), r).median(); median > most {
			best, most = r, median
		}
	}
	return best
}

// rounds is what a function makes of the cells that some results have in a slice, as the median of each
// round. It is empty where a result is missing.
func (c comparison) rounds(f func([]cell) float64, of ...*result) (all spread) {
	for _, r := range of {
		if r == nil || len(r.cells) == 0 {
			return nil
		}
	}
	for slice := 0; slice < len(of[0].cells); slice += c.slices {
		var round spread
		for i := range c.slices {
			var cells []cell
			for _, r := range of {
				cells = append(cells, r.cells[slice+i])
			}
			round = append(round, f(cells))
		}
		all = append(all, round.median())
	}
	return all
}

func of(column column) func([]cell) float64 { return func(c []cell) float64 { return c[0][column] } }

// writeTables writes a table for each group.
func (c comparison) writeTables(w io.Writer) {
	group, pings := "", c.find(groupBaseline, ping, plain)
	for _, r := range c.results {
		if r.group != group {
			group = r.group
			fmt.Fprintf(w, "\n### %s\n\n| |", group)
			for _, column := range columns {
				fmt.Fprintf(w, " %s |", column.name)
			}
			fmt.Fprintf(w, " rate / PING's |\n|---|%s\n", strings.Repeat("--:|", len(columns)+1))
		}
		fmt.Fprintf(w, "| %s | %s |", r.name(), c.rounds(of(rate), r).text(0))
		for i := p50; int(i) < len(columns); i++ {
			fmt.Fprintf(w, " %s |", number(c.rounds(of(i), r).median(), columns[i].decimals))
		}
		fmt.Fprintf(w, " %.2f |\n", c.rounds(faster, r, pings).median())
	}
}
