// Package faulttest is what tests of faults need besides the servers of package redistest: a [Road] to a Redis that can be
// made slow or blocked, and a [Metronome] that tells how much later than promised a busy machine may be.
package faulttest
