package main

import (
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
	require.Equal(t, s, spread(nil).plus(s))
	require.Equal(t, spread{2.5, 5.5}, s.each(2))
	require.Equal(t, "3.0 (1.0–9.0)", s.text(1))
	require.Equal(t, "–", spread(nil).text(1))
	require.Equal(t, "1,234,568", number(1_234_567.8, 0))
}

// A turn of all workers together sees every user, and the latencies of all calls are there.
func TestLoadSeesEverybody(t *testing.T) {
	users := strings.Fields("a b c d e f g h i j k l")
	var mu sync.Mutex
	seen := map[string]int{}
	ask := func(_ context.Context, user string) (verdict, error) {
		mu.Lock()
		defer mu.Unlock()
		seen[user]++
		time.Sleep(time.Millisecond)
		return verdict{allowed: len(seen)%2 == 0}, nil
	}
	l := newLoad(slices.Repeat([]decide{ask}, 4), users)
	tally, err := l.run(t.Context(), time.Minute, l.turn())
	require.NoError(t, err)
	require.Equal(t, len(users), tally.allowed+tally.rejected)
	require.Len(t, seen, len(users))
	require.EqualValues(t, len(users), l.all().TotalCount())
	require.GreaterOrEqual(t, l.all().ValueAtQuantile(50), int64(time.Millisecond*99/100))
}
