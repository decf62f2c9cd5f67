package main

import (
	"math/bits"
	"time"
)

// histogram counts durations to within 1.6 %, from 64 ns to an hour, without allocating: what a
// measurement allocates would be taken for the row's.
type histogram [histogramSize]uint32

const (
	steps         = 64
	histogramUnit = 64 * time.Nanosecond
	histogramSize = steps / 2 * 33
)

func (h *histogram) add(d time.Duration) { h[min(slot(d), histogramSize-1)]++ }

// slot is linear up to steps, and then has steps/2 for each doubling.
func slot(d time.Duration) int {
	v := uint64(max(0, d) / histogramUnit)
	shift := max(0, bits.Len64(v)-bits.Len64(steps-1))
	return shift*steps/2 + int(v>>shift)
}

// lower is the least duration of a slot.
func lower(slot int) time.Duration {
	shift := max(0, slot/(steps/2)-1)
	return time.Duration(slot-shift*steps/2) << shift * histogramUnit
}

func (h *histogram) merge(other *histogram) {
	for i, n := range other {
		h[i] += n
	}
}

// quantile is the duration below which a share q of all lie.
func (h *histogram) quantile(q float64) time.Duration {
	var total, seen uint64
	for _, n := range h {
		total += uint64(n)
	}
	for i, n := range h {
		seen += uint64(n)
		if float64(seen) >= q*float64(total) {
			return (lower(i) + lower(i+1)) / 2
		}
	}
	return 0
}
