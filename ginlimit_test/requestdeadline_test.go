package ginlimit_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/faulttest"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/tiers"
)

// requestDeadline is less than a decision may take.
const requestDeadline = 90 * time.Millisecond

// withDeadline gives each request its own deadline, as a time-out middleware does.
func withDeadline(d time.Duration) gin.HandlerFunc {
	return func(c *gin.Context) {
		ctx, cancel := context.WithTimeout(c.Request.Context(), d)
		defer cancel()
		c.Request = c.Request.WithContext(ctx)
		c.Next()
	}
}

// events keeps what an Observer is told.
type events struct {
	mu  sync.Mutex
	all []ginlimit.Event
}

func (e *events) Observe(_ context.Context, event ginlimit.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, event)
}

// take returns the events since the last take.
func (e *events) take() []ginlimit.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := e.all
	e.all = nil
	return all
}

// hungClients are clients of a server that hangs behind the proxy: one that heeds deadlines and one that does
// not.
var hungClients = map[string]func(*testing.T, *redistest.Proxy) redis.Scripter{
	"redisclient": func(t *testing.T, p *redistest.Proxy) redis.Scripter {
		return limiterClient(t, "redis://"+p.Addr)
	},
	"go-redis's defaults": func(t *testing.T, p *redistest.Proxy) redis.Scripter {
		rdb := redis.NewClient(&redis.Options{Addr: p.Addr})
		t.Cleanup(func() { _ = rdb.Close() })
		return rdb
	},
}

// policies are the failure policies, each with how the first call of a user ends by it, whose limit is 3.
var policies = map[string]struct {
	of    ginlimit.FailurePolicy
	wants func(*testing.T, answer)
}{
	"FailOpen": {ginlimit.FailOpen(), func(t *testing.T, r answer) {
		require.Equal(t, http.StatusOK, r.StatusCode)
		require.Empty(t, r.Header.Values(ginlimit.HeaderLimit))
	}},
	"FailClosed": {ginlimit.FailClosed(), func(t *testing.T, r answer) {
		require.Equal(t, http.StatusServiceUnavailable, r.StatusCode)
		require.Equal(t, "rate_limiter_unavailable", r.apiError(t).Code)
	}},
	"FailLocal": {ginlimit.FailLocal(ginlimit.NewMemoryLimiter()), func(t *testing.T, r answer) {
		require.Equal(t, http.StatusOK, r.StatusCode)
		require.Equal(t, "3 2 minute", r.limits(t))
	}},
}

// A request with less time than a decision may take is decided by the failure policy before its time is over,
// the breaker opens, and log and event tell. R33.
func TestARequestDeadlineBelowTheLimiters(t *testing.T) {
	logs := captureLogs(t)
	lag := faulttest.MeasureLag(t)
	srv := redistest.Start(t)
	t.Run("of", func(t *testing.T) {
		for client, connect := range hungClients {
			for mode, opts := range modes {
				for name, policy := range policies {
					t.Run(strings.Join([]string{client, mode, name}, ", "), func(t *testing.T) {
						t.Parallel()
						proxy := redistest.NewProxy(t, srv.Addr)
						h := &hungSite{told: &events{}, took: &stopwatch{}, lag: lag, wants: policy.wants}
						h.api = serve(t, h.took.measure, withDeadline(requestDeadline),
							ginlimit.New(ginlimit.NewLimiter(connect(t, proxy)), resolver, slices.Concat(opts,
								[]ginlimit.Option{ginlimit.WithTiers(table(t, 3, 9)),
									ginlimit.WithFailurePolicy(policy.of), ginlimit.WithObserver(h.told)})...))
						decides := func() bool {
							h.api.as(redistest.ID(t))
							return h.told.take()[0].Err == nil
						}
						require.Eventually(t, decides, 10*time.Second, time.Millisecond)
						proxy.Swallow()
						for asked := 0; !errors.Is(h.ask(t), ginlimit.ErrUnavailable); asked++ {
							require.Less(t, asked, 20, "the breaker stays closed")
						}
					})
				}
			}
		}
	})
	limiters := len(hungClients) * len(modes) * len(policies)
	require.GreaterOrEqual(t, strings.Count(logs.String(), "Redis could not decide"), limiters)
	require.GreaterOrEqual(t, strings.Count(logs.String(), "Redis does not answer"), limiters)
}

// hungSite is a service whose requests have deadlines, before a Redis that hangs.
type hungSite struct {
	*api
	told  *events
	took  *stopwatch
	lag   *faulttest.Lag
	wants func(*testing.T, answer)
}

// ask makes a request that the failure policy decides in time, and returns the observer's events. If the
// machine was too busy for the call, it is made again.
func (h *hungSite) ask(t *testing.T) error {
	t.Helper()
	for range 100 {
		h.told.take()
		h.took.restart()
		r := h.as(redistest.ID(t))
		d := h.took.all()[0]
		if d.Length() > requestDeadline-faulttest.Computing/2 && h.lag.During(d) > faulttest.Computing {
			continue
		}
		require.Less(t, d.Length(), requestDeadline)
		h.wants(t, r)
		first := h.told.take()[0]
		require.Equal(t, ginlimit.StoreError, first.Outcome)
		require.Error(t, first.Err)
		return first.Err
	}
	t.Fatal("this machine has no time for the test")
	return nil
}

// The memory limiter that decides in Redis's place keeps its limits. R33.
func TestARequestDeadlineAndFailLocal(t *testing.T) {
	captureLogs(t)
	s := newSite(t, "")
	told := &events{}
	api := serve(t, withDeadline(requestDeadline), ginlimit.New(ginlimit.NewLimiter(s.rdb), resolver,
		ginlimit.WithTiers(table(t, 2, 9)), ginlimit.WithAtomicWindows(), ginlimit.WithObserver(told),
		ginlimit.WithFailurePolicy(ginlimit.FailLocal(ginlimit.NewMemoryLimiter()))))
	s.proxy.Swallow()
	admitted, rejected := 0, 0
	for calls := 0; rejected < 3; calls++ {
		require.Less(t, calls, 50)
		switch api.as("alice").StatusCode { // a machine that is busy may make a 503 of any
		case http.StatusOK:
			admitted++
		case http.StatusTooManyRequests:
			rejected++
		}
	}
	require.Equal(t, 2, admitted)
	for _, e := range told.take() {
		require.True(t, e.Local || e.Outcome == ginlimit.StoreError, "%+v", e)
	}
}

// An estimator that runs past the request's own deadline has not refused the request: it is a 503, without a
// line in the log.
func TestARequestDeadlineInTheEstimator(t *testing.T) {
	logs := captureLogs(t)
	tokens, _ := plenty(t, func(l *tiers.Limits) { l.TokensPerDay = 1000 })
	opts := []ginlimit.Option{ginlimit.WithTiers(tokens), ginlimit.WithUsage(ginlimit.EstimatorFunc(
		func(c *gin.Context) (ginlimit.Usage, error) {
			<-c.Request.Context().Done()
			return ginlimit.Usage{}, errors.New("read tcp: i/o timeout")
		}))}
	l, router := ginlimit.NewMemoryLimiter(), gin.New()
	router.GET("/", headerAuth, ginlimit.New(l, resolver, opts...))
	router.GET("/shadow", headerAuth, ginlimit.New(l, resolver, append(opts, ginlimit.WithShadow())...))
	get := func(path string) *httptest.ResponseRecorder {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
		r.Header.Set(headerUser, "alice")
		w := httptest.NewRecorder()
		router.ServeHTTP(w, r)
		return w
	}
	w := get("/")
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Contains(t, w.Body.String(), "rate_limiter_unavailable")
	require.Equal(t, http.StatusOK, get("/shadow").Code, "WithShadow rejects nothing")
	require.Empty(t, logs.String())
}
