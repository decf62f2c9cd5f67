package ginlimit_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/tiers"
)

// detailed is an Observer that is all that one may be.
type detailed struct {
	mu      sync.Mutex
	events  []ginlimit.Event
	calls   []ginlimit.StoreCall
	settled []ginlimit.Settlement
}

func (d *detailed) Observe(_ context.Context, e ginlimit.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, e)
}

func (d *detailed) ObserveStore(_ context.Context, c ginlimit.StoreCall) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, c)
}

func (d *detailed) ObserveSettlement(_ context.Context, s ginlimit.Settlement) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.settled = append(d.settled, s)
}

func TestStoreObserver(t *testing.T) {
	captureLogs(t)
	srv := redistest.Start(t)
	l := ginlimit.NewLimiter(srv.Client(t))
	d := &detailed{}
	api := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 1, 9)), ginlimit.WithObserver(d)))
	api.as("alice")
	api.as("alice")
	l.SetDisabled(true)
	api.as("alice")
	l.SetDisabled(false)
	srv.Kill()
	api.as("alice")
	require.Len(t, d.events, 4)
	require.Len(t, d.calls, 3, "the kill switch asks nobody")
	for i, c := range d.calls {
		require.Equal(t, "/v1/chat", c.Route)
		require.Greater(t, c.Took, time.Duration(0))
		require.Equal(t, i == 2, c.Err != nil)
	}
	require.Equal(t, ginlimit.PolicyClosed, d.events[3].Policy)
	require.Empty(t, d.events[0].Policy)
}

// Every reservation is told once, with what became of it.
func TestSettlementObserver(t *testing.T) {
	table, _ := plenty(t, func(l *tiers.Limits) { l.TokensPerMinute, l.SpendPerDay = 1000, 1000 })
	for name, tt := range map[string]struct {
		handler gin.HandlerFunc
		want    ginlimit.Usage
	}{
		"settled": {func(c *gin.Context) {
			ginlimit.AdmissionFrom(c).Settle(ginlimit.Usage{Tokens: 7, Spend: 3})
		}, ginlimit.Usage{Tokens: 7, Spend: 3}},
		"without one": {func(*gin.Context) {}, ginlimit.Usage{Tokens: 100, Spend: 200}},
		"refunded":    {func(c *gin.Context) { ginlimit.AdmissionFrom(c).Refund() }, ginlimit.Usage{}},
		"panics":      {func(*gin.Context) { panic("mine") }, ginlimit.Usage{Tokens: 100, Spend: 200}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &detailed{}
			l := ginlimit.NewMemoryLimiter()
			api := serve(t, gin.CustomRecoveryWithWriter(nil, func(*gin.Context, any) {}),
				ginlimit.New(l, resolver, ginlimit.WithTiers(table), ginlimit.WithUsage(headerUsage),
					ginlimit.WithObserver(d)), tt.handler)
			api.as("alice", "Tokens", "100", "Spend", "200")
			api.as("alice", "Tokens", "1000") // above what is left, or above the budget with it
			d.mu.Lock()
			defer d.mu.Unlock()
			require.Equal(t, ginlimit.Settlement{Route: "/v1/chat", Tier: tiers.Free,
				Reserved: ginlimit.Usage{Tokens: 100, Spend: 200}, Used: tt.want}, d.settled[0])
			told := map[bool]int{true: 2, false: 1}[name == "refunded"]
			require.Len(t, d.settled, told, "a rejection reserves nothing")
		})
	}
}
