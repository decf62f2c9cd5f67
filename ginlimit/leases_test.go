package ginlimit

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
	"github.com/gin-tiers/ratelimit/tiers"
)

// renewals is a store that notes how leases are renewed.
type renewals struct {
	budget.Store
	mu       sync.Mutex
	calls    []int           // leases in each
	deadline []time.Duration // of each
	fail     bool
}

func (r *renewals) Renew(ctx context.Context, leases []budget.Held) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	deadline, _ := ctx.Deadline()
	r.calls, r.deadline = append(r.calls, len(leases)), append(r.deadline, time.Until(deadline))
	if r.fail {
		return errors.New("refused")
	}
	return r.Store.Renew(ctx, leases)
}

// streams is a limiter that allows each user one request at once, and a function that sends one of a user,
// which lasts so long.
func streams(t *testing.T) (*renewals, func(user string, lasts time.Duration) int) {
	t.Helper()
	gin.SetMode(gin.ReleaseMode)
	l := NewMemoryLimiter()
	kept := &renewals{Store: l.counter.Store}
	l.counter.Store, l.counter.Leases.Store = kept, kept
	l.counter.Timeout = time.Millisecond
	table, err := tiers.NewStore(
		tiers.Free,
		map[tiers.Tier]tiers.Limits{tiers.Free: {PerMinute: 1000, PerDay: 1000, Concurrent: 1}},
	)
	require.NoError(t, err)
	router := gin.New()
	router.Use(func(c *gin.Context) { c.Set("user", c.GetHeader("user")) },
		New(l, FromContext("user", "tier"), WithTiers(table), WithConcurrency()))
	router.GET("/", func(c *gin.Context) {
		d, _ := time.ParseDuration(c.GetHeader("lasts"))
		time.Sleep(d)
	})
	return kept, func(user string, lasts time.Duration) int {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("user", user)
		r.Header.Set("lasts", lasts.String())
		router.ServeHTTP(w, r)
		return w.Code
	}
}

// A stream of more than twice a lease's length keeps its slot, and no longer.
func TestALongStreamKeepsItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(time.Minute) // all streams and renewals end
		_, send := streams(t)
		const lasts = 2*budget.LeaseTime + 1500*time.Millisecond
		done := false
		go func() {
			send("alice", lasts)
			done = true
		}()
		for range int(lasts / time.Second) {
			time.Sleep(time.Second)
			synctest.Wait()
			require.Equal(t, http.StatusTooManyRequests, send("alice", 0))
			require.Equal(t, http.StatusOK, send("bob", 0))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		require.True(t, done)
		require.Equal(t, http.StatusOK, send("alice", 0))
	})
}

// All leases of a process are renewed in one call a tick, for as long as there are any. It has the time until
// the next one.
func TestOneRenewalATick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(time.Minute) // all streams and renewals end
		kept, send := streams(t)
		for i := range 300 {
			go send(strconv.Itoa(i), 22*time.Second)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []int{300, 300, 300, 300}, kept.calls)
		for _, left := range kept.deadline {
			require.Equal(t, budget.LeaseTime/3, left)
		}
		go send("alice", 6*time.Second) // who comes when the ticking has ended starts it again
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []int{300, 300, 300, 300, 1}, kept.calls)
	})
}

// A renewal that failed is tried again at the next tick, which is in time.
func TestAFailedRenewalCostsNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(time.Minute) // all streams and renewals end
		kept, send := streams(t)
		kept.fail = true
		go send("alice", 30*time.Second)
		time.Sleep(6 * time.Second) // one has failed
		synctest.Wait()
		require.Len(t, kept.calls, 1)
		kept.mu.Lock()
		kept.fail = false
		kept.mu.Unlock()
		for range 22 {
			time.Sleep(time.Second)
			synctest.Wait()
			require.Equal(t, http.StatusTooManyRequests, send("alice", 0))
		}
	})
}

// A holder that cannot renew any more, as one that was killed, loses its slot when the lease ends.
func TestAHolderThatDiesLosesItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(time.Minute) // all streams and renewals end
		kept, send := streams(t)
		kept.fail = true
		go send("alice", time.Minute)
		time.Sleep(budget.LeaseTime - time.Millisecond)
		synctest.Wait()
		require.Equal(t, http.StatusTooManyRequests, send("alice", 0))
		time.Sleep(time.Millisecond)
		synctest.Wait()
		require.Equal(t, http.StatusOK, send("alice", 0))
	})
}
