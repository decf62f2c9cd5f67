package ginlimit_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/tiers"
)

// A steady load is not refused for three windows: at all of an exact window, at all of a bounded one with at
// most one request a slice, and at 98 % of a bounded one whatever its density. Q12.
func TestSteadyLoad(t *testing.T) {
	usage, bounded := ginlimit.WithUsage(headerUsage), ginlimit.WithBoundedWindows()
	for name, tt := range map[string]struct {
		change func(*tiers.Limits)
		opt    ginlimit.Option
		window time.Duration
		tokens int
		every  time.Duration
		full   bool // one more is refused
	}{
		"exact": {func(l *tiers.Limits) { l.PerMinute, l.PerDay = 60, 60*60*24 }, ginlimit.WithAtomicWindows(),
			time.Minute, 0,
			time.Second, true},
		"exact, denser": {func(l *tiers.Limits) { l.PerMinute, l.PerDay = 600, 60*60*24*10 },
			ginlimit.WithAtomicWindows(),
			time.Minute, 0, time.Second / 10, true},
		"a token a slice": {func(l *tiers.Limits) { l.TokensPerMinute = 60 }, usage, time.Minute, 1, time.Second,
			true},
		"tokens every ten slices": {func(l *tiers.Limits) { l.TokensPerMinute = 3600 }, usage, time.Minute, 600,
			10 * time.Second, true},
		"a request a slice of a day": {func(l *tiers.Limits) { l.PerMinute, l.PerDay = 10, 60 }, bounded,
			24 * time.Hour, 0,
			24 * time.Minute, true},
		"ten tokens a slice": {func(l *tiers.Limits) { l.TokensPerMinute = 6000 }, usage, time.Minute, 10,
			time.Minute / 588, false},
		"three requests a slice of a day": {func(l *tiers.Limits) { l.PerMinute, l.PerDay = 10, 200 }, bounded,
			24 * time.Hour,
			0, 24 * time.Hour / 196, false},
	} {
		for _, store := range []string{"redis", "memory"} {
			t.Run(name+" "+store, func(t *testing.T) {
				c := newClock()
				l := ginlimit.NewMemoryLimiter(ginlimit.WithClock(c.now))
				if store == "redis" {
					l = ginlimit.NewLimiter(
						redistest.Client(t),
						ginlimit.WithClock(c.now),
						ginlimit.WithTimeout(10*time.Second),
					)
				}
				table, _ := plenty(t, tt.change)
				router := gin.New()
				router.Use(headerAuth, ginlimit.New(l, resolver, ginlimit.WithTiers(table), tt.opt))
				router.GET("/", func(*gin.Context) {})
				req := httptest.NewRequest(http.MethodGet, "/", nil)
				req.Header.Set(headerUser, redistest.ID(t))
				req.Header.Set("Tokens", strconv.Itoa(tt.tokens))
				status := func() int {
					w := httptest.NewRecorder()
					router.ServeHTTP(w, req.Clone(t.Context()))
					return w.Code
				}
				begin := c.now()
				for n := range int(3 * tt.window / tt.every) {
					at := begin.Add(time.Duration(n) * tt.every)
					c.advance(at.Sub(c.now()))
					require.Equal(t, http.StatusOK, status(), "request %d, after %v", n+1, at.Sub(begin))
				}
				if tt.full {
					require.Equal(t, http.StatusTooManyRequests, status(), "and no more than that")
				}
			})
		}
	}
}
