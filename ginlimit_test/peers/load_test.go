package main

import (
	"context"
	"math"
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
	require.Equal(t, "3.0 (1.0–9.0)", s.text(1))
	require.Equal(t, "–", spread(nil).text(1))
	require.Equal(t, "1,234,568", number(1_234_567.8, 0))
	require.Equal(t, "–", number(math.NaN(), 0))
}

// Ratios are taken within a slice; a round's is the median of its slices.
func TestRounds(t *testing.T) {
	c := comparison{slices: 2}
	a := &result{cells: []cell{{rate: 4}, {rate: 9}, {rate: 6}, {rate: 8}}}
	b := &result{cells: []cell{{rate: 2}, {rate: 3}, {rate: 3}, {rate: 2}}}
	require.Equal(t, spread{2.5, 3}, c.rounds(faster, a, b))
	require.Empty(t, c.rounds(faster, a, nil))
	require.Equal(t, 3.0, addsLess([]cell{{rate: 1.0 / 2}, {rate: 1.0 / 4}, {rate: 1}}))
}

// In a visit all callers together see every user, and all latencies are there. Those of one lane take turns.
func TestRunSeesEverybody(t *testing.T) {
	users := strings.Fields("a b c d e f g h i j k l")
	var mu sync.Mutex
	seen := map[string]int{}
	ask := func(_ context.Context, user string) (verdict, error) {
		mu.Lock()
		defer mu.Unlock()
		seen[user]++
		time.Sleep(time.Millisecond)
		return verdict{allowed: true}, nil
	}
	callers := callersOf(slices.Repeat([]decide{ask}, 4), users)
	lanes := [][]*caller{callers[:2], callers[2:]}
	_, err := run(t.Context(), lanes, 2, time.Minute, &verdict{allowed: true})
	require.NoError(t, err)
	require.Len(t, seen, len(users))
	for _, c := range callers {
		require.Equal(t, 2, seen[c.users[0]])
		require.EqualValues(t, 2*3, c.latencies.TotalCount())
		require.GreaterOrEqual(t, c.latencies.ValueAtQuantile(50), int64(time.Millisecond*99/100))
	}
	_, err = run(t.Context(), lanes, forever, 0, &verdict{})
	require.ErrorContains(t, err, "allowed true", "the wrong verdict ends a run")
}
