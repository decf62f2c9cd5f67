package chaos

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit_test/faulttest"
)

// clockStep is how much shorter than itself a window may seem: scores are whole milliseconds, rounded down.
const clockStep = 2 * time.Millisecond

// mostInOneWindow returns how many admissions were certainly in one true window: those whose spans lie within
// a stretch that is shorter than the window. It never counts too many, since each was made somewhere within
// its span; one that may have been in the window, or not, is left out.
func mostInOneWindow(admitted []faulttest.Span, window time.Duration) (most int) {
	earlier := func(a, b faulttest.Span) int { return a.Begin.Compare(b.Begin) }
	byBegin := slices.SortedFunc(slices.Values(admitted), earlier)
	for i, first := range byBegin {
		closes := first.Begin.Add(window - clockStep)
		n := 0
		for _, a := range byBegin[i:] {
			if a.Begin.After(closes) {
				break
			}
			if a.End.Before(closes) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

func TestMostInOneWindow(t *testing.T) {
	base := time.Now()
	at := func(ms int) time.Time { return base.Add(time.Duration(ms) * time.Millisecond) }
	spans := func(ms ...int) (s []faulttest.Span) {
		for i := 0; i < len(ms); i += 2 {
			s = append(s, faulttest.Span{Begin: at(ms[i]), End: at(ms[i+1])})
		}
		return s
	}
	for name, tt := range map[string]struct {
		admitted []faulttest.Span
		want     int
	}{
		"none":                        {nil, 0},
		"one":                         {spans(0, 1), 1},
		"two at once":                 {spans(0, 1, 0, 1), 2},
		"exactly a window apart":      {spans(0, 0, 1000, 1000), 1},
		"less than a window apart":    {spans(0, 0, 990, 990), 2},
		"one that may be outside":     {spans(0, 0, 900, 1100), 1},
		"one that began too early":    {spans(0, 900, 950, 1050), 1},
		"the later ones are more":     {spans(0, 1, 1500, 1501, 1600, 1601, 2400, 2401), 3},
		"a long one hides no others":  {spans(0, 5000, 10, 11, 20, 21, 30, 31), 3},
		"one of unknown time is none": {spans(0, 1000), 0},
	} {
		require.Equal(t, tt.want, mostInOneWindow(tt.admitted, time.Second), name)
	}
}
