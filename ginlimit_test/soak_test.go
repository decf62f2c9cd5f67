package ginlimit_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

var soakTime = flag.Duration("soak", 0, "how long TestSoak runs; 0 skips it")

// Mixed traffic at full speed, on two clients of one Redis and its clock. Every reply must be the one
// that a list of admissions gives, taken in the server's own order; in the end the callers were
// admitted exactly as often as that list says, Redis holds exactly what is left of it, every key has
// its TTL, and neither side's memory has grown.
//
//	go test ./ginlimit_test -run TestSoak -soak 60s -v
func TestSoak(t *testing.T) {
	if *soakTime == 0 {
		t.Skip("runs by -soak 60s")
	}
	const phases, workers = 4, 16
	srv := redistest.Start(t)
	s := newSoak(t, srv)
	var first, last footprint
	for phase := range phases {
		end := time.Now().Add(*soakTime / phases)
		var wg sync.WaitGroup
		for worker := range workers {
			random := rand.New(rand.NewPCG(uint64(phase), uint64(worker)))
			wg.Go(func() {
				for time.Now().Before(end) && !t.Failed() {
					s.act(phase, random)
				}
			})
		}
		wg.Wait()
		require.False(t, t.Failed())
		last = s.settle(phase)
		if phase == 0 {
			first = last
		}
	}
	total := s.audit.next - 1
	t.Logf("%d script calls, %.0f/s; %d admitted; %+v after the first quarter, %+v after the last",
		total, float64(total)/soakTime.Seconds(), s.admittedInAll(), first, last)
	require.LessOrEqual(t, last.redis, first.redis+2<<20, "bytes that Redis has in use beyond its keys")
	require.LessOrEqual(t, last.heap, first.heap+4<<20, "bytes of Go's heap")
	require.LessOrEqual(t, last.goroutines, first.goroutines+2)
}

// footprint is what is in use while nothing happens.
type footprint struct {
	redis, heap int64 // bytes
	goroutines  int
}

type soak struct {
	t        *testing.T
	srv      *redistest.Server
	rdb      *redis.Client
	audit    *audit
	limiters [2]*ginlimit.Limiter
	routers  [2]http.Handler

	admitted [len(families)]atomic.Int64 // as the callers saw it
}

func newSoak(t *testing.T, srv *redistest.Server) *soak {
	s := &soak{t: t, srv: srv, rdb: srv.Client(t), audit: newAudit(t)}
	for i := range s.limiters {
		l := ginlimit.NewLimiter(&ledger{rdb: srv.Client(t), audit: s.audit}, ginlimit.WithTimeout(time.Minute))
		s.limiters[i], s.routers[i] = l, soakRouter(t, l)
	}
	return s
}

// The routes of the service, and the windows that a request takes on each.
var routes = []struct {
	path  string
	takes []string
}{
	{"/atomic", []string{":60", ":86400"}},
	{"/separate", []string{":60", ":86400"}},
	{"/twice", []string{":60", ":86400"}},
	{"/scoped", []string{":60", ":86400", ":images:60", ":images:86400"}},
	{"/stacked", []string{":60", ":86400", ":inner:60", ":inner:86400"}},
}

// families are the kinds of keys: those of Check, and the middleware's by what follows the user.
var families = [...]string{"check", ":60", ":86400", ":images:60", ":images:86400", ":inner:60",
	":inner:86400"}

func family(key string) int {
	user, rest, _ := strings.Cut(strings.TrimPrefix(key, "ratelimit:"), ":")
	if strings.HasPrefix(user, "check-") {
		return 0
	}
	return slices.Index(families[:], ":"+rest)
}

func soakRouter(t *testing.T, l *ginlimit.Limiter) http.Handler {
	budgets := ginlimit.WithTiers(table(t, 30, 45))
	separate, atomic := ginlimit.New(l, resolver, budgets), ginlimit.New(l, resolver, budgets,
		ginlimit.WithAtomicWindows())
	router := gin.New()
	router.Use(headerAuth)
	ok := func(c *gin.Context) { c.Status(http.StatusOK) }
	router.GET("/atomic", atomic, ok)
	router.GET("/separate", separate, ok)
	router.GET("/twice", separate, separate, ok)
	router.GET("/scoped", ginlimit.New(l, resolver, budgets, ginlimit.WithScope("images", table(t, 10, 15))), ok)
	router.GET("/stacked", atomic, ginlimit.New(l.Scope("inner"), resolver, ginlimit.WithTiers(table(t, 5, 8))),
		ok)
	return router
}

// act makes one call of some kind. Users of the middleware are others in each phase; those of Check
// stay, and are joined by ever new ones that call once or twice.
func (s *soak) act(phase int, random *rand.Rand) {
	ctx := context.Background()
	i := random.IntN(len(s.limiters))
	l := s.limiters[i]
	client := fmt.Sprintf("client-%d-%d", phase, random.IntN(100))
	checker := fmt.Sprintf("check-%d", random.IntN(20))
	limit, window := random.IntN(20)-1, time.Duration(1+random.IntN(3))*time.Second
	var err error
	switch n := random.IntN(1000); {
	case n < 400:
		route := routes[random.IntN(len(routes))]
		req := httptest.NewRequest(http.MethodGet, route.path, nil)
		req.Header.Set(headerUser, client)
		w := httptest.NewRecorder()
		s.routers[i].ServeHTTP(w, req)
		if w.Code == http.StatusOK {
			for _, suffix := range route.takes {
				s.admitted[slices.Index(families[:], suffix)].Add(1)
			}
		} else if w.Code != http.StatusTooManyRequests {
			err = fmt.Errorf("%s: %d %s", route.path, w.Code, w.Body)
		}
	case n < 800:
		if n < 500 {
			checker = fmt.Sprintf("check-once-%d", random.Uint64())
		}
		var d ginlimit.Decision
		if d, err = l.Check(ctx, checker, limit, window); d.Allowed {
			s.admitted[0].Add(1)
		}
	case n < 850:
		_, err = l.Peek(ctx, checker, limit, window)
	case n < 900:
		_, err = l.Scope("images").Peek(ctx, client, 10, time.Minute)
	case n < 901: // so seldom that most requests live to leave their window
		err = l.Reset(ctx, checker, time.Second, 2*time.Second, 3*time.Second)
	case n < 950:
		err = l.Reset(ctx, client)
	case n < 999:
		err = l.Reset(ctx, client, time.Minute) // so that the day is the window that is full
	default:
		err = s.rdb.ScriptFlush(ctx).Err()
	}
	if err != nil {
		s.t.Error(err)
	}
}

// settle compares everything while nothing happens, and then lets the phase's users go.
func (s *soak) settle(phase int) (f footprint) {
	t, ctx := s.t, s.t.Context()
	require.Empty(t, s.audit.pending, "calls that wait for an earlier one")
	for i, name := range families {
		require.EqualValues(t, s.admitted[i].Load(), s.audit.admitted[i], "admitted, %s", name)
	}

	var inKeys int64
	seen := map[string]bool{}
	for scan := s.rdb.Scan(ctx, 0, "", 1000).Iterator(); scan.Next(ctx); {
		key := scan.Val()
		if key == sequence || seen[key] {
			continue
		}
		seen[key] = true
		inKeys += s.compare(key)
	}
	now := s.rdb.Time(ctx).Val().UnixMilli()
	for key, log := range s.audit.logs {
		require.True(t, seen[key] || len(log.live(now)) == 0, "%s is gone, with %d requests in its window", key,
			len(log.live(now)))
	}
	f.redis = s.info("memory", "used_memory") - inKeys

	for user := range 100 {
		for _, scope := range []string{"", "images", "inner"} {
			require.NoError(t, s.limiters[0].Scope(scope).Reset(ctx, fmt.Sprintf("client-%d-%d", phase, user)))
		}
	}
	s.audit.forget(now)
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	f.heap, f.goroutines = int64(stats.HeapAlloc), runtime.NumGoroutine()
	return f
}

// compare holds a key against the audit's list and returns its size in Redis. A TTL is window + 1 s
// from the newest request on; the server's clock moves on a little between reading it and setting it.
func (s *soak) compare(key string) int64 {
	t, ctx := s.t, s.t.Context()
	pipe := s.rdb.TxPipeline()
	began, entries, expiry := pipe.Time(ctx), pipe.ZRangeWithScores(ctx, key, 0, -1), pipe.PExpireTime(ctx, key)
	size := pipe.MemoryUsage(ctx, key)
	if _, err := pipe.Exec(ctx); err == redis.Nil {
		return 0 // it has expired since it was listed
	} else {
		require.NoError(t, err)
	}
	log := s.audit.logs[key]
	require.NotNil(t, log, "%s", key)

	var got, want []entry
	for _, z := range entries.Val() {
		got = append(got, entry{int64(z.Score), z.Member.(string)})
	}
	now := began.Val().UnixMilli()
	got, want = (&requests{window: log.window, entries: got}).live(now), slices.Clone(log.live(now))
	slices.SortFunc(want, func(a, b entry) int { // as Redis sorts them
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return strings.Compare(a.member, b.member)
	})
	require.Equal(t, want, got, "%s", key)

	require.Positive(t, expiry.Val(), "%s has no TTL", key)
	newest := int64(entries.Val()[len(entries.Val())-1].Score)
	require.InDelta(t, newest+log.window+1000, expiry.Val().Milliseconds(), 900, "%s expires at", key)
	return size.Val()
}

func (s *soak) info(section, field string) int64 {
	text, err := s.rdb.Info(s.t.Context(), section).Result()
	require.NoError(s.t, err)
	_, value, _ := strings.Cut(text, field+":")
	value, _, _ = strings.Cut(value, "\r")
	n, err := strconv.ParseInt(value, 10, 64)
	require.NoError(s.t, err)
	return n
}

func (s *soak) admittedInAll() (n int64) {
	for i := range s.admitted {
		n += s.admitted[i].Load()
	}
	return n
}
