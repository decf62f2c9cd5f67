package memstore

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/storetest"
)

// What Keys and Entries bound, in bytes: a window of a user, with a key of ordinary
// length, and each request in it. BenchmarkMemory measures them.
const (
	bytesPerKey   = 500
	bytesPerEntry = 130
)

// heap is what is in use after a collection.
func heap() int64 {
	runtime.GC()
	runtime.GC() // the second one frees what pools held during the first
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// fill admits each requests of every user from index first on.
func fill(s *Store, first, users, each int) {
	for n := range each {
		for i := first; i < first+users; i++ {
			// As long as a UUID.
			admitTo(s, i, math.MaxInt, strconv.Itoa(1_000_000*(n+1)+i)+"-0000-4000-8000-00000000000")
		}
	}
}

// admitTo decides one request of a user, whose index it takes.
func admitTo(s *Store, user, limit int, member string) budget.Verdict {
	claims := []budget.Claim{{Key: memoryKey(user), Budget: requests(limit, budget.Day)}}
	verdicts, _, _ := s.Admit(context.Background(), member, claims)
	return verdicts[0]
}

func requests(limit int, window time.Duration) budget.Budget {
	return budget.Budget{Dimension: budget.Dimension{Window: window}, Limit: limit}
}

func memoryKey(i int) string {
	return "ratelimit:u-0123456789ABCDEFGHIJKLM" + strconv.Itoa(i) + ":86400"
}

// requireCounted checks that the count of entries is right, and that no log is kept for nothing.
func requireCounted(t require.TestingT, s *Store) {
	entries := 0
	for _, log := range s.budgets.Values() {
		require.Positive(t, log.len())
		entries += log.len()
	}
	require.Equal(t, entries, s.entries)
}

// BenchmarkMemory reports what a memory limiter at its bounds keeps, in bytes for each key and each
// entry.
//
//	go test -run '^$' -bench 'Memory$' -benchtime 1x ./ginlimit/internal/memstore
func BenchmarkMemory(b *testing.B) {
	for _, bm := range []struct{ keys, entries int }{
		{Keys, Keys}, {Keys, Entries}, {Entries / 100, Entries}, {1, Entries},
	} {
		b.Run(fmt.Sprintf("keys=%d/entries=%d", bm.keys, bm.entries), func(b *testing.B) {
			for b.Loop() {
				before := heap()
				s := New(nil)
				fill(s, 0, bm.keys, bm.entries/bm.keys)
				grown := float64(heap() - before)
				b.ReportMetric(grown/float64(bm.keys), "B/key")
				b.ReportMetric(grown/float64(bm.entries), "B/entry")
				b.ReportMetric(grown/1e6, "MB")
				runtime.KeepAlive(s)
			}
		})
	}
}

// A million users, each of them once: the memory is that of Keys of them.
func TestMemoryOfAMillionKeysIsBounded(t *testing.T) {
	before := heap()
	s := New(nil)
	fill(s, 0, 1_000_000, 1)
	require.LessOrEqual(t, heap()-before, int64(Keys*(bytesPerKey+bytesPerEntry)))
	require.Equal(t, Keys, s.budgets.Len())
	requireCounted(t, s)
}

// Beyond Keys the user who was seen longest ago starts anew, and nobody else.
func TestMemoryForgetsWhoWasSeenLongestAgo(t *testing.T) {
	s := New(storetest.NewClock().Now)
	calls := 0
	call := func(user int) budget.Verdict {
		calls++
		return admitTo(s, user, 1, strconv.Itoa(calls))
	}
	fill(s, 0, Keys, 1)
	require.False(t, call(0).Allowed, "a rejected call is a call: user 0 was seen last")
	require.True(t, call(Keys).Allowed, "a new user")
	require.Equal(t, Keys, s.budgets.Len())
	for _, i := range []int{0, 2, Keys - 1, Keys} {
		require.False(t, call(i).Allowed, "user %d is not forgotten", i)
	}
	require.True(t, call(1).Allowed, "user 1 was seen longest ago")
	requireCounted(t, s)
}

// Beyond Entries whole users are forgotten, longest ago first, but never the one who calls,
// however much that one has.
func TestEntriesAreBounded(t *testing.T) {
	s := New(storetest.NewClock().Now)
	const share = Entries / 10
	put := func(user, entries int) { // admitted at one moment; who asked does not matter here
		log := newRequestLog()
		log.entries = slices.Repeat([]logEntry{{at: storetest.Epoch}}, entries)
		s.budgets.Add(memoryKey(user), log)
		s.entries += entries
	}
	held := func() (users []int) {
		for user := range 12 {
			if s.budgets.Contains(memoryKey(user)) {
				users = append(users, user)
			}
		}
		return users
	}

	for user := range 10 {
		put(user, share)
	}
	admitTo(s, 0, math.MaxInt, "one too many")
	require.Equal(t, []int{0, 2, 3, 4, 5, 6, 7, 8, 9}, held(), "user 1 was seen longest ago, user 0 calls")

	put(10, share-2)
	admitTo(s, 10, math.MaxInt, "the last that has room")
	require.Equal(t, Entries, s.entries)
	require.Equal(t, []int{0, 2, 3, 4, 5, 6, 7, 8, 9, 10}, held())
	admitTo(s, 11, math.MaxInt, "one too many")
	require.Equal(t, []int{0, 3, 4, 5, 6, 7, 8, 9, 10, 11}, held())
	requireCounted(t, s)

	s = New(storetest.NewClock().Now)
	put(0, Entries)
	for i := range 2 {
		require.True(t, admitTo(s, 0, math.MaxInt, strconv.Itoa(-i-1)).Allowed)
	}
	require.Equal(t, Entries+2, s.entries, "there is nobody else to forget")
	admitTo(s, 1, math.MaxInt, "another user's")
	require.Equal(t, []int{1}, held())
	requireCounted(t, s)
}

// What has left its window is freed at the user's next call, also where something else stays.
func TestMemoryFreesWhatHasExpired(t *testing.T) {
	day := budget.Day.Milliseconds()
	for name, next := range map[string]int64{"all of it": 2 * day, "all but one": day} {
		t.Run(name, func(t *testing.T) {
			c := storetest.NewClock()
			before := heap()
			s := New(c.Now)
			fill(s, 0, 1, 100_000)
			require.Greater(t, heap()-before, int64(5_000_000), "bytes, of 100,000 entries")
			c.Set(budget.Day.Milliseconds() / 2)
			admitTo(s, 0, math.MaxInt, "half a day later")
			c.Set(next)
			admitTo(s, 0, math.MaxInt, "now")
			require.LessOrEqual(t, s.entries, 2)
			require.Less(t, heap()-before, int64(1_000_000), "bytes, of %d entries", s.entries)
			runtime.KeepAlive(s)
		})
	}
}

// 100 goroutines, the default clock: exactly the limit of every user.
func TestMemoryIsExactUnderLoad(t *testing.T) {
	const users, limit = 10, 10
	s := New(nil)
	var admitted [users]atomic.Int64
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			for i := range 3 * users {
				user := i % users
				if admitTo(s, user, limit, uuid.NewString()).Allowed {
					admitted[user].Add(1)
				}
				claims := []budget.Claim{{Key: memoryKey(user), Budget: requests(limit, budget.Day)}}
				_, _ = s.Peek(t.Context(), claims)
				_ = s.Reset(t.Context(), []string{"other"})
			}
		})
	}
	wg.Wait()
	for i := range users {
		require.EqualValues(t, limit, admitted[i].Load(), "user %d", i)
	}
	requireCounted(t, s)
}

// The default clock is the monotonic one, which no administrator or time server steps: its wall
// time moves by exactly what the monotonic reading moves. That of time.Now is read separately.
func TestMemoryClockIsMonotonic(t *testing.T) {
	clock := New(nil).clock
	first := clock()
	require.WithinDuration(t, time.Now(), first, time.Minute, "it starts at the real time")
	for range 1000 {
		now := clock()
		require.Equal(t, now.Sub(first), now.Round(0).Sub(first.Round(0)))
		require.GreaterOrEqual(t, now.Sub(first), time.Duration(0))
	}
	require.Positive(t, clock().Sub(first), "it runs")
}

func TestConformance(t *testing.T) {
	c := storetest.NewClock()
	storetest.Conform(t, New(c.Now), c)
}

func newSubject() storetest.Subject {
	c := storetest.NewClock()
	s := New(c.Now)
	return storetest.Subject{
		Store: s, Clock: c, Key: uuid.NewString(),
		Look: func(key string) (found storetest.Contents) {
			log, _ := get[*requestLog](s, key)
			for i := range log.len() {
				found.Log = append(found.Log, storetest.Admission{At: log.entries[i].at, ID: log.entries[i].member})
			}
			return found
		},
		Check: func(t require.TestingT) { requireCounted(t, s) },
	}
}

func TestModel(t *testing.T) { storetest.Model(t, newSubject) }

func TestArrivals(t *testing.T) { storetest.Arrivals(t, newSubject) }

func TestUsage(t *testing.T) { storetest.Usage(t, newSubject) }
