package faulttest

import "time"

// Span is the time from Begin to End.
type Span struct{ Begin, End time.Time }

// Since is the span from begin to now.
func Since(begin time.Time) Span { return Span{begin, time.Now()} }

// Length returns End - Begin.
func (s Span) Length() time.Duration { return s.End.Sub(s.Begin) }
