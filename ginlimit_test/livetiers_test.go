package ginlimit_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/tiers"
	"github.com/gin-tiers/ratelimit/tiers/watch"
)

// A changed tier file counts at the next decision; a bad one changes nothing. Q42, M4.
func TestLiveTiers(t *testing.T) {
	captureLogs(t)
	path := filepath.Join(t.TempDir(), "tiers.yaml")
	write := func(perMinute string) {
		text := "tiers:\n  free: {per_minute: " + perMinute + ", per_day: 100}\n"
		require.NoError(t, os.WriteFile(path+".new", []byte(text), 0o600))
		require.NoError(t, os.Rename(path+".new", path))
	}
	write("2")
	file, err := watch.Open(path)
	require.NoError(t, err)
	reports := make(chan error, 10)
	go file.Watch(t.Context(), func(_ *tiers.Store, err error) { reports <- err })
	onEach(t, func(t *testing.T, l *ginlimit.Limiter) {
		write("2")
		require.Eventually(t, func() bool { return file.Store().Lookup("free").PerMinute == 2 }, 10*time.Second,
			time.Millisecond)
		a := serve(t, ginlimit.New(l, resolver, ginlimit.WithLiveTiers(file)))
		require.Equal(t, "2 1 minute", a.as("alice").limits(t))
		require.Equal(t, "2 0 minute", a.as("alice").limits(t))
		require.Equal(t, http.StatusTooManyRequests, a.as("alice").StatusCode)
		write("5")
		require.Eventually(t, func() bool { return file.Store().Lookup("free").PerMinute == 5 }, 10*time.Second,
			time.Millisecond)
		require.Equal(t, "5 2 minute", a.as("alice").limits(t))
		for len(reports) > 0 {
			<-reports
		}
		write("none")
		require.Error(t, <-reports)
		require.Equal(t, "5 1 minute", a.as("alice").limits(t))
	})
}

// sourceOf is a table that a test swaps.
type sourceOf struct{ atomic.Pointer[tiers.Store] }

func (s *sourceOf) Store() *tiers.Store { return s.Load() }

// A table that nothing could decide is refused, and logged once; at start it panics.
func TestLiveTiersOfNoUse(t *testing.T) {
	logs := captureLogs(t)
	undecided, _ := plenty(t, func(l *tiers.Limits) { l.TokensPerDay = 5 })
	var src sourceOf
	src.Pointer.Store(table(t, 3, 9))
	l := ginlimit.NewMemoryLimiter()
	a := serve(t, ginlimit.New(l, resolver, ginlimit.WithLiveTiers(&src)))
	require.Equal(t, "3 2 minute", a.as("alice").limits(t))
	src.Pointer.Store(undecided)
	for range 2 {
		require.Equal(t, "3", a.as("alice").Header.Get(ginlimit.HeaderLimit))
	}
	require.Equal(t, 1, strings.Count(logs.String(), "tokens_per_day"))
	src.Pointer.Store(table(t, 7, 9))
	require.Equal(t, "7 3 minute", a.as("alice").limits(t))

	src.Pointer.Store(undecided)
	require.Contains(t, panicOf(func() {
		ginlimit.New(ginlimit.NewMemoryLimiter(), resolver, ginlimit.WithLiveTiers(&src))
	}), "add WithUsage")
	require.Contains(t, panicOf(func() {
		ginlimit.New(
			ginlimit.NewMemoryLimiter(),
			resolver,
			ginlimit.WithLiveTiers(&src),
			ginlimit.WithTiers(undecided),
		)
	}), "contradict")
}
