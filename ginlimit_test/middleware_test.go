package ginlimit_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/tiers"
)

// modes are the two ways in which a middleware asks for its windows.
var modes = map[string][]ginlimit.Option{
	"separate calls": nil,
	"atomic windows": {ginlimit.WithAtomicWindows()},
}

// The limit headers are there before a stream's first byte.
func TestStreamsCarryTheHeaders(t *testing.T) {
	for name, opts := range modes {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			router := gin.New()
			router.Use(headerAuth, ginlimit.New(ginlimit.NewLimiter(redistest.Client(t)), resolver, opts...))
			router.GET("/v1/stream", func(c *gin.Context) {
				c.Header("Content-Type", "text/event-stream")
				c.Writer.Flush()
				<-release
				c.SSEvent("message", "done")
			})
			api := (&api{t: t}).on(router)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, api.URL+"/v1/stream", nil)
			require.NoError(t, err)
			req.Header.Set(headerUser, redistest.ID(t))
			resp, err := http.DefaultClient.Do(req) // returns with the headers, while the handler waits
			require.NoError(t, err)
			defer resp.Body.Close()
			require.Equal(t, "5 4 minute", answer{Response: resp}.limits(t))
			close(release)
			line, err := bufio.NewReader(resp.Body).ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "event:message\n", line)
		})
	}
}

// Changing the tier changes the number that is compared, and nothing else.
func TestTiersChangeOnlyTheNumber(t *testing.T) {
	srv := redistest.Start(t)
	rdb := srv.Client(t)
	api := serve(t, ginlimit.New(ginlimit.NewLimiter(rdb), resolver, ginlimit.WithAtomicWindows()))
	for i, tt := range []struct{ tier, want string }{
		{"free", "5 4 minute"}, {"pro", "60 58 minute"}, {"enterprise", "600 597 minute"}, {"free", "5 1 minute"},
		{"unheard-of", "5 0 minute"}, {"free", "5 0 minute"}, {"", "5 0 minute"}, {"pro", "60 54 minute"},
	} {
		r := api.as("alice", headerTier, tt.tier)
		require.Equal(t, tt.want, r.limits(t), "call %d, tier %q", i, tt.tier)
	}
	keys, err := rdb.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"ratelimit:alice:60", "ratelimit:alice:86400"}, keys, "the same keys")
	require.EqualValues(t, 6, rdb.ZCard(t.Context(), "ratelimit:alice:60").Val(), "the count was kept")
	require.EqualValues(t, 6, rdb.ZCard(t.Context(), "ratelimit:alice:86400").Val())
	require.Equal(t, 1, srv.Calls(t, "eval"), "one script was ever loaded")
}

// One round trip for each window that is asked; one in all for atomic windows.
func TestRoundTrips(t *testing.T) {
	for _, tt := range []struct {
		name                      string
		opts                      []ginlimit.Option
		admitted, byDay, byMinute int
	}{
		{"separate calls", nil, 2, 3, 1}, // by the day: minute, day, give back
		{"atomic windows", []ginlimit.Option{ginlimit.WithAtomicWindows()}, 1, 1, 1},
		{"two scopes", []ginlimit.Option{ginlimit.WithScope("images", table(t, 9, 9))}, 1, 1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := redistest.Start(t)
			l := ginlimit.NewLimiter(srv.Client(t))
			api := serve(t, ginlimit.New(l, resolver, append(tt.opts, ginlimit.WithTiers(table(t, 2, 3)))...))
			trips := func(user string) int {
				before := srv.Calls(t, "evalsha")
				api.as(user)
				return srv.Calls(t, "evalsha") - before
			}
			fill := func(user string, window time.Duration, n int) {
				for range n {
					_, err := l.Check(t.Context(), user, n, window)
					require.NoError(t, err)
				}
			}
			fill("by-day", 24*time.Hour, 3)
			trips("by-day") // loads the scripts
			fill("by-minute", time.Minute, 2)
			require.Equal(t, tt.admitted, trips("alice"))
			require.Equal(t, tt.byDay, trips("by-day"))
			require.Equal(t, tt.byMinute, trips("by-minute"))
		})
	}
}

func TestObserver(t *testing.T) {
	var events []ginlimit.Event
	l := ginlimit.NewMemoryLimiter()
	observer := ginlimit.ObserverFunc(func(ctx context.Context, e ginlimit.Event) {
		events = append(events, e)
		_, err := l.Peek(ctx, "alice", 1, time.Minute) // calling back is no deadlock
		require.NoError(t, err)
	})
	captureLogs(t)
	api := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 1, 9)),
		ginlimit.WithObserver(observer)))
	api.as("alice", headerTier, "no such tier")
	api.as("alice")
	l.SetDisabled(true)
	api.as("alice")
	require.Len(t, events, 3)
	for i, want := range []ginlimit.Event{
		{Outcome: ginlimit.Admitted, Decision: ginlimit.Decision{Allowed: true, Limit: 1, Window: time.Minute}},
		{Outcome: ginlimit.Rejected, Decision: ginlimit.Decision{Limit: 1, Window: time.Minute}},
		{Outcome: ginlimit.Bypassed, Decision: ginlimit.Decision{Allowed: true, Limit: 1, Remaining: 1,
			Window: time.Minute}},
	} {
		got := events[i]
		require.Equal(t, i == 1, got.Decision.RetryAfter > 0)
		got.Decision.RetryAfter = 0
		want.Route, want.Tier, want.UnknownTier = "/v1/chat", tiers.Free, i == 0
		require.Equal(t, want, got)
	}
	raw, err := json.Marshal(events)
	require.NoError(t, err)
	require.NotContains(t, string(raw), "alice", "no user ids")
}
