package rejectioncache_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/memstore"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/rejectioncache"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/storetest"
)

// counted counts what is asked of a store.
type counted struct {
	budget.Store
	admits int
}

func (c *counted) Admit(
	ctx context.Context,
	id string,
	claims []budget.Claim,
) ([]budget.Verdict, int64, error) {
	c.admits++
	return c.Store.Admit(ctx, id, claims)
}

func requests(limit int, window time.Duration) budget.Claim {
	return budget.Claim{
		Key:    window.String(),
		Budget: budget.Budget{Dimension: budget.Dimension{Window: window}, Limit: limit},
	}
}

func tokens(limit, cost int) budget.Claim {
	d := budget.Dimension{Window: budget.Minute, Unit: budget.Tokens}
	return budget.Claim{Key: "tokens", Budget: budget.Budget{Dimension: d, Limit: limit}, Cost: cost}
}

func newStores(t *testing.T) (s *rejectioncache.Store, asked func() int, clock *storetest.Clock) {
	t.Helper()
	clock = storetest.NewClock()
	c := &counted{Store: memstore.New(clock.Now)}
	return rejectioncache.New(c, 100, clock.Now), func() int { n := c.admits; c.admits = 0; return n }, clock
}

func admit(t *testing.T, s budget.Store, claims ...budget.Claim) (id string, v budget.Verdict) {
	t.Helper()
	id = uuid.NewString()
	verdicts, _, err := s.Admit(t.Context(), id, claims)
	require.NoError(t, err)
	return id, verdicts[len(verdicts)-1]
}

// A rejection holds for a second, never longer than Retry-After, and its wait runs down.
func TestRejectionsAreRemembered(t *testing.T) {
	s, asked, clock := newStores(t)
	minute := requests(1, budget.Minute)
	admit(t, s, minute)
	_, first := admit(t, s, minute)
	require.Equal(t, time.Minute, first.RetryAfter)
	require.Equal(t, 2, asked())
	clock.Set(899)
	_, v := admit(t, s, minute)
	require.Equal(t, budget.Verdict{Used: 1, RetryAfter: time.Minute - 899*time.Millisecond}, v)
	require.Equal(t, 0, asked())
	clock.Set(900)
	admit(t, s, minute)
	require.Equal(t, 1, asked(), "one caller asks again")
	clock.Set(1_900)
	admit(t, s, minute)
	require.Equal(t, 1, asked(), "believed for a second")
	clock.Set(59_500)
	admit(t, s, minute)
	clock.Set(59_999)
	_, v = admit(t, s, minute)
	require.Equal(t, time.Millisecond, v.RetryAfter)
	require.Equal(t, 1, asked())
	clock.Set(60_000)
	_, v = admit(t, s, minute)
	require.True(t, v.Allowed, "never later than Retry-After")
	require.EqualValues(t, 2, s.Hits())
}

// Another limit or cost is another question, so a tier change passes at once. Q30.
func TestOtherQuestionsAreAsked(t *testing.T) {
	s, asked, _ := newStores(t)
	admit(t, s, requests(1, budget.Minute))
	admit(t, s, requests(1, budget.Minute))
	asked()
	_, v := admit(t, s, requests(5, budget.Minute))
	require.True(t, v.Allowed)
	require.Equal(t, 1, asked())

	log := requests(100, budget.Day)
	admit(t, s, log, tokens(100, 60))
	_, v = admit(t, s, log, tokens(100, 60))
	require.False(t, v.Allowed)
	asked()
	_, v = admit(t, s, log, tokens(100, 60))
	require.False(t, v.Allowed)
	require.Zero(t, asked())
	_, v = admit(t, s, log, tokens(100, 40))
	require.True(t, v.Allowed)
	_, v = admit(t, s, log, tokens(100, 1000))
	require.True(t, v.TooLarge)
	_, v = admit(t, s, log, tokens(100, 1000))
	require.True(t, v.TooLarge)
	require.Equal(t, 3, asked(), "too large is no rejection that ends")
}

// What this process gives back, refunds, settles for less or resets is there at once.
func TestRoomIsSeenAtOnce(t *testing.T) {
	for name, make := range map[string]func(s budget.Store, a budget.Admission) error{
		"refund": func(s budget.Store, a budget.Admission) error { return s.Finish(context.Background(), a, nil) },
		"settle": func(s budget.Store, a budget.Admission) error {
			return s.Finish(context.Background(), a, []int{1, 1})
		},
		"reset": func(s budget.Store, a budget.Admission) error {
			return s.Reset(context.Background(), []string{a.Claims[0].Key, a.Claims[1].Key})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, _ := newStores(t)
			claims := []budget.Claim{requests(100, budget.Day), tokens(100, 60)}
			id := uuid.NewString()
			_, at, err := s.Admit(t.Context(), id, claims)
			require.NoError(t, err)
			_, v := admit(t, s, claims...)
			require.False(t, v.Allowed)
			require.NoError(t, make(s, budget.Admission{ID: id, At: at, Claims: claims}))
			_, v = admit(t, s, claims...)
			require.True(t, v.Allowed)
		})
	}
}

// It passes the same suite as the store that it stands before.
func TestConformance(t *testing.T) {
	c := storetest.NewClock()
	storetest.Conform(t, rejectioncache.New(memstore.New(c.Now), 1000, c.Now), c)
}

// A rejection that is remembered: at most 1 µs and 4 allocations.
func BenchmarkRejected(b *testing.B) {
	s := rejectioncache.New(memstore.New(nil), 1000, nil)
	claims := []budget.Claim{requests(1, budget.Minute), requests(1, budget.Day)}
	for range 2 {
		_, _, _ = s.Admit(b.Context(), uuid.NewString(), claims)
	}
	b.ReportAllocs()
	for b.Loop() {
		_, _, _ = s.Admit(b.Context(), "id", claims)
	}
}
