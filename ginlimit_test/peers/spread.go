package main

import (
	"fmt"
	"slices"
)

// spread is what several rounds of one measurement gave.
type spread []float64

func (s spread) median() float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	if n := len(sorted); n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(sorted)/2]
}

func (s spread) min() float64 { return slices.Min(s) }
func (s spread) max() float64 { return slices.Max(s) }

// over divides round by round: what disturbed one round disturbed both sides of its ratio.
func (s spread) over(t spread) spread {
	ratios := make(spread, min(len(s), len(t)))
	for i := range ratios {
		ratios[i] = s[i] / t[i]
	}
	return ratios
}

// text is the median and the range, each in the given format.
func (s spread) text(format string) string {
	if len(s) == 0 {
		return "–"
	}
	return fmt.Sprintf(format+" ("+format+"–"+format+")", s.median(), s.min(), s.max())
}

// plus adds round by round; the zero spread is none.
func (s spread) plus(t spread) spread {
	sum := slices.Clone(t)
	for i := range s {
		sum[i] += s[i]
	}
	return sum
}

// minus subtracts round by round.
func (s spread) minus(t spread) spread {
	difference := make(spread, min(len(s), len(t)))
	for i := range difference {
		difference[i] = s[i] - t[i]
	}
	return difference
}

// each makes one value, the median, of every n.
func (s spread) each(n int) spread {
	var medians spread
	for chunk := range slices.Chunk(s, n) {
		medians = append(medians, chunk.median())
	}
	return medians
}
