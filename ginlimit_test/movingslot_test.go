package ginlimit_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/tiers"
)

// A Cluster that moves a user's slot refuses scripts over several keys for as long as the move stands. Atomic
// windows are then decided one by one: each request is counted once, and a rejected one costs nothing. R39.
func TestAtomicWindowsOfAUserWhoseSlotIsHalfMoved(t *testing.T) {
	captureLogs(t)
	s := startShards(t)
	rdb := clusterClient(t, s.Cluster)
	for name, tt := range map[string]struct {
		before int      // requests before the move
		moved  []string // windows whose keys have moved; the rest stays
	}{
		"the minute has moved": {1, []string{"60"}},
		"the day has moved":    {1, []string{"86400"}},
		"both have moved":      {1, []string{"60", "86400"}},
		"none has moved":       {1, nil},
		"a new user":           {0, nil},
	} {
		// On a client of go-redis's defaults too, which takes its time for repeats.
		for client, rdb := range map[string]redis.UniversalClient{"redisclient": rdb, "go-redis": s.Client(t)} {
			t.Run(name+", "+client, func(t *testing.T) {
				limits := tiers.Limits{PerMinute: 3, PerDay: 5}
				told := &events{}
				l := ginlimit.NewLimiter(rdb, ginlimit.WithTimeout(time.Second)) // for a machine that is busy
				api := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 3, 5)),
					ginlimit.WithAtomicWindows(), ginlimit.WithObserver(told)))
				user := s.user(t, s.Nodes[0])
				minute, day := "ratelimit:{"+user+"}:60", "ratelimit:{"+user+"}:86400"
				entries := func() [2]int64 {
					return [2]int64{s.admin.ZCard(t.Context(), minute).Val(), s.admin.ZCard(t.Context(), day).Val()}
				}
				for range tt.before {
					require.Equal(t, http.StatusOK, api.as(user).StatusCode)
				}
				s.halfMove(t, user, tt.moved...)

				for i := tt.before; i < 3; i++ {
					require.Equal(t, []string{"3 2 minute", "3 1 minute", "3 0 minute"}[i], api.as(user).limits(t))
				}
				require.Equal(t, http.StatusTooManyRequests, api.as(user).StatusCode)
				require.Equal(t, [2]int64{3, 3}, entries(), "once each")

				left, err := l.Usage(t.Context(), user, limits)
				require.NoError(t, err)
				require.Equal(t, []int{0, 2}, []int{left[0].Remaining, left[1].Remaining})
				d, err := l.Peek(t.Context(), user, 5, 24*time.Hour)
				require.NoError(t, err)
				require.Equal(t, 2, d.Remaining)
				require.NoError(t, l.Reset(t.Context(), user))
				require.Equal(t, [2]int64{}, entries(), "Reset clears both")

				for range 5 { // the day is used up, the minute is not
					past := redis.Z{Score: float64(time.Now().Add(-time.Hour).UnixMilli()), Member: uuid.NewString()}
					require.NoError(t, s.admin.ZAdd(t.Context(), day, past).Err())
				}
				r := api.as(user)
				require.Equal(t, http.StatusTooManyRequests, r.StatusCode)
				require.Equal(t, "5 0 day", r.limits(t))
				require.Equal(t, [2]int64{0, 5}, entries(), "a rejected request gives back")
				for _, e := range told.take() {
					require.NoError(t, e.Err)
				}
			})
		}
	}
}
