// Package promql_test runs the queries of ginlimit/prom's alert rules and dashboard on what its collector
// shows.
package promql_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/prom"
	"github.com/gin-tiers/ratelimit/ginlimit/redisclient"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/tiers"
)

func init() { gin.SetMode(gin.TestMode) }

// shop is a service with a collector, of which a test makes trouble.
type shop struct {
	t       *testing.T
	srv     *redistest.Server
	limiter *ginlimit.Limiter
	metrics *prom.Collector
	router  *gin.Engine
}

func open(t *testing.T) *shop {
	t.Helper()
	s := &shop{t: t, srv: redistest.Start(t), router: gin.New()}
	rdb, err := redisclient.New(s.srv.URL())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	s.limiter = ginlimit.NewLimiter(rdb, ginlimit.WithTimeout(5*time.Second))
	s.metrics = prom.New(s.limiter)
	table, err := tiers.NewStore(tiers.Free, map[tiers.Tier]tiers.Limits{
		tiers.Free: {PerMinute: 5, PerDay: 100, TokensPerMinute: 10_000, SpendPerDay: 10_000_000, Concurrent: 500},
	})
	require.NoError(t, err)
	estimate := ginlimit.EstimatorFunc(func(*gin.Context) (ginlimit.Usage, error) {
		return ginlimit.Usage{Tokens: 10, Spend: 1000}, nil
	})
	for path, policy := range map[string]ginlimit.FailurePolicy{
		"/closed": ginlimit.FailClosed(), "/open": ginlimit.FailOpen(),
		"/local": ginlimit.FailLocal(ginlimit.NewMemoryLimiter()),
	} {
		s.router.GET(path, ginlimit.New(s.limiter, ginlimit.TierResolverFunc(
			func(c *gin.Context) (ginlimit.Subject, error) {
				return ginlimit.Subject{UserID: c.Query("user"), Tier: tiers.Tier(c.Query("tier"))}, nil
			}), ginlimit.WithTiers(table), ginlimit.WithObserver(s.metrics), ginlimit.WithFailurePolicy(policy),
			ginlimit.WithUsage(estimate), ginlimit.WithConcurrency()), func(*gin.Context) {})
	}
	plain := s.limiter.Scope("plain")
	s.router.GET("/plain", ginlimit.New(plain, ginlimit.ByClientIP(tiers.Free),
		ginlimit.WithObserver(s.metrics), ginlimit.WithAtomicWindows()))
	return s
}

func (s *shop) get(path string) {
	s.router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
}

// trade is traffic of a good day: admissions, and a rejection or two.
func (s *shop) trade() {
	for i := range 7 {
		s.get("/closed?tier=free&user=user_8421")
		s.get("/open?tier=free&user=user_" + strconv.Itoa(i))
	}
	s.crowd()
}

// crowd makes decisions wait for company until some have gone together.
func (s *shop) crowd() {
	grouped := func() (n uint64) {
		for _, times := range s.limiter.Stats().Groups {
			n += times
		}
		return n
	}
	for before := grouped(); grouped() == before; {
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() { s.get("/plain") })
		}
		all.Wait()
	}
}

// series are what the collector shows now, by name and labels as a scrape would store them.
func (s *shop) series() map[string]float64 {
	s.t.Helper()
	registry := prometheus.NewPedanticRegistry()
	require.NoError(s.t, registry.Register(s.metrics))
	families, err := registry.Gather()
	require.NoError(s.t, err)
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			labels := func(more ...string) string {
				pairs := append([]string{`job="api"`, `instance="a:1"`}, more...)
				for _, l := range m.Label {
					pairs = append(pairs, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
				}
				return "{" + strings.Join(pairs, ",") + "}"
			}
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				all[f.GetName()+labels()] = m.GetCounter().GetValue()
			case dto.MetricType_GAUGE:
				all[f.GetName()+labels()] = m.GetGauge().GetValue()
			case dto.MetricType_HISTOGRAM:
				h := m.GetHistogram()
				for _, b := range h.Bucket {
					le := `le="` + strconv.FormatFloat(b.GetUpperBound(), 'g', -1, 64) + `"`
					all[f.GetName()+"_bucket"+labels(le)] = float64(b.GetCumulativeCount())
				}
				all[f.GetName()+"_bucket"+labels(`le="+Inf"`)] = float64(h.GetSampleCount())
				all[f.GetName()+"_sum"+labels()] = h.GetSampleSum()
				all[f.GetName()+"_count"+labels()] = float64(h.GetSampleCount())
			}
		}
	}
	return all
}

// query runs queries at the second of two scrapes, a minute apart.
func query(t *testing.T, first, second map[string]float64) func(expr string) int {
	t.Helper()
	var load strings.Builder
	load.WriteString("load 1m\n")
	for series, value := range second {
		before := "_"
		if v, ok := first[series]; ok {
			before = strconv.FormatFloat(v, 'g', -1, 64)
		}
		fmt.Fprintf(&load, "\t%s %s %s\n", series, before, strconv.FormatFloat(value, 'g', -1, 64))
	}
	store := promqltest.LoadedStorage(t, load.String())
	engine := promqltest.NewTestEngine(t, false, 0, 100_000)
	return func(expr string) int {
		t.Helper()
		q, err := engine.NewInstantQuery(t.Context(), store, nil, expr, time.Unix(60, 0))
		require.NoError(t, err, expr)
		defer q.Close()
		found, err := q.Exec(t.Context()).Vector()
		require.NoError(t, err, expr)
		for _, sample := range found {
			require.False(t, sample.F != sample.F, "%s is not a number", expr)
		}
		return len(found)
	}
}

// alerts are the rules' queries by name.
func alerts(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile("../../ginlimit/prom/alerts.yaml")
	require.NoError(t, err)
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	require.NoError(t, yaml.Unmarshal(raw, &file))
	all := map[string]string{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			all[r.Alert] = r.Expr
		}
	}
	return all
}

// Each alert is silent on a good day and fires in its own trouble.
func TestAlerts(t *testing.T) {
	trouble := map[string]func(s *shop){
		"RateLimitKillSwitchOn": func(s *shop) { s.limiter.SetDisabled(true) },
		"RateLimitFailsOpen":    func(s *shop) { s.get("/open?tier=free&user=a") },
		"RateLimitFailsClosed":  func(s *shop) { s.get("/closed?tier=free&user=a") },
		"RateLimitFallsBack":    func(s *shop) { s.get("/local?tier=free&user=a") },
		"RateLimitBreakerOpen": func(s *shop) {
			for range 6 {
				s.get("/closed?tier=free&user=a")
			}
		},
		"RateLimitStoreSlow": func(s *shop) {
			timer := time.AfterFunc(200*time.Millisecond, s.srv.Resume)
			defer timer.Stop()
			s.srv.Pause()
			var all sync.WaitGroup
			for range 2 { // so few that no breaker opens
				all.Go(func() { s.get("/closed?tier=free&user=a") })
			}
			all.Wait()
		},
		"RateLimitUnknownTier": func(s *shop) { s.get("/closed?tier=gold&user=a") },
	}
	rules := alerts(t)
	require.Len(t, rules, len(trouble))
	for name, expr := range rules {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, trouble, name)
			s := open(t)
			s.trade()
			first := s.series()
			s.trade()
			good := s.series()
			if name != "RateLimitStoreSlow" { // this machine's own pace is no subject
				require.Zero(t, query(t, first, good)(expr), "a good day")
			}
			if slices.Contains([]string{"RateLimitFailsOpen", "RateLimitFailsClosed", "RateLimitFallsBack",
				"RateLimitBreakerOpen"}, name) {
				s.srv.Kill()
			}
			trouble[name](s)
			before := s.series()
			trouble[name](s)
			require.Equal(t, 1, query(t, before, s.series())(expr), expr)
		})
	}
}

// Each query of the dashboard finds something in what the collector shows.
func TestDashboard(t *testing.T) {
	raw, err := os.ReadFile("../../ginlimit/prom/dashboard.json")
	require.NoError(t, err)
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(raw, &board))
	require.NotEmpty(t, board.Panels)

	s := open(t)
	all := func() {
		s.trade()
		s.get("/closed?tier=gold&user=a")
		s.limiter.SetDisabled(true)
		s.get("/closed?tier=free&user=a")
		s.limiter.SetDisabled(false)
	}
	down := func() {
		for _, path := range []string{"/open", "/closed", "/local"} {
			s.get(path + "?tier=free&user=a")
		}
	}
	all()
	s.srv.Kill()
	down()
	first := s.series()
	s.srv.Restart()
	require.Eventually(t, func() bool {
		return s.limiter.Stats().BreakersOpen == 0 && func() bool { s.trade(); return true }()
	}, 20*time.Second, 50*time.Millisecond)
	all()
	s.srv.Kill()
	down()
	run := query(t, first, s.series())
	seen := map[string]bool{}
	for _, panel := range board.Panels {
		require.NotEmpty(t, panel.Targets, panel.Title)
		for _, target := range panel.Targets {
			require.NotZero(t, run(strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")), "%s: %s",
				panel.Title, target.Expr)
			for _, word := range strings.FieldsFunc(target.Expr, func(r rune) bool {
				return r != '_' && (r < 'a' || r > 'z')
			}) {
				seen[word] = true
			}
		}
	}
	for series := range s.series() {
		name, _, _ := strings.Cut(series, "{")
		histogram := strings.HasPrefix(name, "ginlimit_group_size_") ||
			strings.HasPrefix(name, "ginlimit_store_seconds_")
		require.True(t, seen[name] || histogram, "the dashboard shows nothing of %s", name)
	}
}
