// Package faulttest lets a test of faults bound a time on a busy machine: [Lag] tells how much later than
// promised the machine may be during a [Span].
package faulttest
