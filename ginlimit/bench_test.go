package ginlimit

import (
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/plan"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/request"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/tiers"
)

// BenchmarkDecision reports what a decision costs on a private Redis and in memory. trips/op are
// the script calls that the server counted.
//
//	go test -run '^$' -bench Decision ./ginlimit
func BenchmarkDecision(b *testing.B) {
	for _, store := range []string{"redis", "memory"} {
		for _, bm := range []struct {
			name   string
			limits tiers.Limits
			atomic bool
			full   bool // the minute is full before the clock starts
		}{
			{name: "two_windows", limits: plenty},
			{name: "two_windows_atomic", limits: plenty, atomic: true},
			{name: "rejected", limits: tiers.Limits{PerMinute: 60, PerDay: 5000}, atomic: true, full: true},
		} {
			b.Run(store+"/"+bm.name, func(b *testing.B) {
				l, srv := benchLimiter(b, store)
				table, err := tiers.NewStore(tiers.Free, map[tiers.Tier]tiers.Limits{tiers.Free: bm.limits})
				if err != nil {
					b.Fatal(err)
				}
				p, _ := plan.NewTable([]plan.Layer{{Names: l.names, Tiers: table}},
					plan.Rules{Atomic: bm.atomic, Share: l.share}).Of("", tiers.Free, time.Now)
				if bm.full {
					for range bm.limits.PerMinute {
						benchDecide(b, l, p, "user0")
					}
				}
				measure(b, srv, func(user string) {
					if bm.full {
						user = "user0"
					}
					if d := benchDecide(b, l, p, user); d.Allowed == bm.full {
						b.Fatal("wrong decision", d)
					}
				})
			})
		}
		b.Run(store+"/one_check", func(b *testing.B) {
			l, srv := benchLimiter(b, store)
			measure(b, srv, func(user string) {
				d, err := l.Check(context.Background(), user, plenty.PerMinute, budget.Minute)
				if err != nil || !d.Allowed {
					b.Fatal(d, err)
				}
			})
		})
	}
}

// plenty is a budget that no benchmark uses up.
var plenty = tiers.Limits{PerMinute: 1 << 40, PerDay: 1 << 40}

// benchUsers keeps logs as short as they are in service: the calls spread over so many users.
const benchUsers = 10_000

func benchLimiter(b *testing.B, store string) (*Limiter, *redistest.Server) {
	b.Helper()
	if store == "memory" {
		return NewMemoryLimiter(), nil
	}
	srv := redistest.Start(b)
	return NewLimiter(srv.Client(b)), srv
}

func benchDecide(b *testing.B, l *Limiter, p plan.Plan, user string) Decision {
	b.Helper()
	ctx := context.Background()
	var r request.Request
	r.Init()
	rejected, err := r.Decide(ctx, &l.counter, p, budget.EncodePart(user), plan.Costs{Weight: 1},
		l.counter.Deadline(ctx, request.Shared))
	if err != nil {
		b.Fatal(err)
	}
	if rejected.Claim != nil {
		return decisionOf(rejected.Claim, rejected.Verdict)
	}
	tightest := request.TightestOf(r.Found)
	return decisionOf(tightest.First())
}

func measure(b *testing.B, srv *redistest.Server, decide func(user string)) {
	b.Helper()
	users := make([]string, benchUsers)
	for i := range users {
		users[i] = "user" + strconv.Itoa(i)
	}
	decide(users[0]) // loads the script
	if srv != nil {
		srv.ResetStats(b)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		decide(users[i%benchUsers])
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
	if srv != nil {
		b.ReportMetric(float64(srv.Calls(b, "evalsha")+srv.Calls(b, "eval"))/float64(b.N), "trips/op")
	}
}

// BenchmarkMiddleware reports the Go side alone, headers included: the Scripter is a stub that
// admits everything at once. What Gin and the authentication cost is in it too.
func BenchmarkMiddleware(b *testing.B) {
	pass, h := admittedRequest(New(NewLimiter(admitEverything()), FromContext("user", "tier"),
		WithAtomicWindows()))
	b.ReportAllocs()
	for b.Loop() {
		pass()
	}
	if h.Get(HeaderRemaining) != "59" {
		b.Fatal("not admitted: ", h)
	}
}

func TestMiddlewareAllocations(t *testing.T) {
	without, _ := admittedRequest()
	pass, h := admittedRequest(New(NewLimiter(admitEverything()), FromContext("user", "tier"),
		WithAtomicWindows()))
	least := math.Inf(1)
	for range 5 { // a collection in between empties Gin's pool
		least = min(least, testing.AllocsPerRun(1000, pass)-testing.AllocsPerRun(1000, without))
	}
	require.LessOrEqual(t, least, 8.0, "as the docs say")
	require.Equal(t, "59", h.Get(HeaderRemaining))
}

// admittedRequest returns a function that takes one request through the limits, both windows in one script,
// and the header that they set.
func admittedRequest(limits ...gin.HandlerFunc) (pass func(), h http.Header) {
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	keys := map[any]any{"user": "user_8421", "tier": tiers.Pro}
	router.Use(func(c *gin.Context) { c.Keys = keys })
	router.GET("/", append(limits, func(*gin.Context) {})...)
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
	return func() { router.ServeHTTP(w, r) }, w.Header()
}

type stubScripter struct {
	redis.Scripter
	cmd *redis.Cmd
}

func admitEverything() stubScripter {
	reply := []any{int64(1), int64(1), int64(0), int64(1), int64(1), int64(0)}
	return stubScripter{cmd: redis.NewCmdResult(reply, nil)}
}

func (s stubScripter) EvalSha(context.Context, string, []string, ...any) *redis.Cmd { return s.cmd }

// BenchmarkKeys reports what the encoding of an id costs.
func BenchmarkKeys(b *testing.B) {
	for name, id := range map[string]string{"plain": "user_8421", "encoded": "ip/2001:db8::/64"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = budget.EncodePart(id)
			}
		})
	}
}
