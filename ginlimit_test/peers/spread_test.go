package main

import (
	"bufio"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSpread(t *testing.T) {
	s := spread{4, 1, 9, 2}
	require.Equal(t, 3.0, s.median())
	require.Equal(t, 4.0, spread{9, 4, 1}.median())
	require.Zero(t, spread(nil).median())
	require.Equal(t, spread{2, 1, 3, 1}, s.over(spread{2, 1, 3, 2}))
	require.Equal(t, spread{2, 0, 6, 0}, s.minus(spread{2, 1, 3, 2}))
	require.Equal(t, spread{6, 2, 12, 4}, s.plus(spread{2, 1, 3, 2}))
	require.Equal(t, spread{2.5, 5.5}, s.each(2))
	require.Equal(t, "3.0 (1.0–9.0)", s.text("%.1f"))
	require.Equal(t, "–", spread(nil).text("%.1f"))
}

func TestThousands(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 999.6: "1,000", 12_345: "12,345", 1_234_567: "1,234,567"} {
		require.Equal(t, want, thousands(v))
	}
}

// A turn of all workers together sees every user, and no user twice where the numbers fit.
func TestLoadSeesEverybody(t *testing.T) {
	users := strings.Fields("a b c d e f g h i j k l")
	var mu sync.Mutex
	seen := map[string]int{}
	ask := func(_ context.Context, user string) (bool, error) {
		mu.Lock()
		defer mu.Unlock()
		seen[user]++
		return len(seen)%2 == 0, nil
	}
	tally, err := load{workers: slices.Repeat([]decide{ask}, 4), users: users, duration: time.Minute, calls: 3}.run(t.Context())
	require.NoError(t, err)
	require.Equal(t, len(users), tally.decisions())
	require.Len(t, seen, len(users))
}

func TestSkim(t *testing.T) {
	for reply, want := range map[string]string{
		"*3\r\n:1\r\n:22\r\n:0\r\n": "1", "+OK\r\n": "OK", ":7\r\n": "7",
	} {
		first, _, err := skim(bufio.NewReader(strings.NewReader(reply)))
		require.NoError(t, err)
		require.Equal(t, want, first)
	}
	for _, reply := range []string{"-ERR no\r\n", "*1\r\n-ERR no\r\n", "*2\r\n:1\r\n", "*x\r\n", "\n", ""} {
		_, _, err := skim(bufio.NewReader(strings.NewReader(reply)))
		require.Error(t, err, "%q", reply)
	}
}

func TestHistogram(t *testing.T) {
	for slot := range histogramSize - 1 {
		require.Less(t, lower(slot), lower(slot+1))
	}
	for d := histogramUnit; d < time.Hour; d += d/7 + 1 {
		at := slot(d)
		require.LessOrEqual(t, lower(at), d)
		require.Greater(t, lower(at+1), d)
		if d > steps*histogramUnit {
			require.LessOrEqual(t, float64(lower(at+1)-lower(at))/float64(d), 2.0/steps)
		}
	}
	var h histogram
	for i := range 1000 {
		h.add(time.Duration(i+1) * time.Millisecond)
	}
	require.InEpsilon(t, 500*time.Millisecond, h.quantile(0.5), 0.03)
	require.InEpsilon(t, 990*time.Millisecond, h.quantile(0.99), 0.03)
	h.add(100 * time.Hour) // counts as the longest there is
}
