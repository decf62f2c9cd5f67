package main

import (
	"fmt"
	"slices"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// spread is what several rounds of one measurement gave.
type spread []float64

func (s spread) median() float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return (sorted[(len(s)-1)/2] + sorted[len(s)/2]) / 2
}

// over divides round by round: what disturbed one round disturbed both sides of its ratio.
func (s spread) over(t spread) spread { return s.with(t, func(a, b float64) float64 { return a / b }) }

// plus adds round by round; no rounds add nothing.
func (s spread) plus(t spread) spread {
	if len(s) == 0 {
		return t
	}
	return s.with(t, func(a, b float64) float64 { return a + b })
}

func (s spread) minus(t spread) spread { return s.with(t, func(a, b float64) float64 { return a - b }) }

func (s spread) with(t spread, f func(a, b float64) float64) spread {
	both := make(spread, min(len(s), len(t)))
	for i := range both {
		both[i] = f(s[i], t[i])
	}
	return both
}

// each makes one value, the median, of every n.
func (s spread) each(n int) (medians spread) {
	for chunk := range slices.Chunk(s, n) {
		medians = append(medians, chunk.median())
	}
	return medians
}

// text is the median and the range, each with so many decimals and with commas.
func (s spread) text(decimals int) string {
	if len(s) == 0 {
		return "–"
	}
	return fmt.Sprintf("%s (%s–%s)", number(s.median(), decimals), number(slices.Min(s), decimals),
		number(slices.Max(s), decimals))
}

func number(v float64, decimals int) string {
	return message.NewPrinter(language.English).Sprintf("%.*f", decimals, v)
}
