package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
)

// writeTables writes a table for each group.
func (c comparison) writeTables(w io.Writer) {
	ping := c.find(groupBaseline, ping.name, false)
	group := ""
	for _, r := range c.results {
		if r.group != group {
			group = r.group
			fmt.Fprintf(w, "\n### %s\n\n", titleCase(group))
			fmt.Fprintln(w, "| | decisions/s (range) | p50 ms | p99 ms | allocs | B allocated | round trips | B to and from Redis | µs in Redis commands | µs of Redis CPU | µs of CPU here | rate / PING's |")
			fmt.Fprintln(w, "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
		}
		median := func(column func(cell) float64) float64 { return r.of(column).median() }
		rate := r.rate().each(c.slices)
		fmt.Fprintf(w, "| %s | %s (%s–%s) | %.2f | %.2f | %.1f | %.0f | %.3f | %.0f | %.2f | %.2f | %.2f | %.2f |\n",
			r.name(), thousands(rate.median()), thousands(rate.min()), thousands(rate.max()),
			median(func(c cell) float64 { return c.p50 / 1e3 }),
			median(func(c cell) float64 { return c.p99 / 1e3 }),
			median(func(c cell) float64 { return c.allocs }),
			median(func(c cell) float64 { return c.heap }),
			median(func(c cell) float64 { return c.trips }),
			median(func(c cell) float64 { return c.wire }),
			median(func(c cell) float64 { return c.command }),
			median(func(c cell) float64 { return c.serving }),
			median(func(c cell) float64 { return c.asking }),
			r.rate().over(ping.rate()).median())
	}
}

// thousands writes a whole number with commas.
func thousands(v float64) string {
	s := strconv.FormatInt(int64(math.Round(v)), 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func titleCase(s string) string {
	if s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return string(s[0]-'a'+'A') + s[1:]
}
