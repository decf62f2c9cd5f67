package main

import (
	"fmt"
	"math"
	"slices"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// spread is what several rounds, or the slices of one, gave.
type spread []float64

func (s spread) median() float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return (sorted[(len(s)-1)/2] + sorted[len(s)/2]) / 2
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
	if math.IsNaN(v) {
		return "–"
	}
	return message.NewPrinter(language.English).Sprintf("%.*f", decimals, v)
}
