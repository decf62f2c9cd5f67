package chaos

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/faulttest"
	"github.com/gin-tiers/ratelimit/tiers"
)

// The tiers of the users, small enough that a few seconds meet them.
const (
	limit = 40 // of most users, a minute

	narrow tiers.Tier = "narrow" // the day is nearly as small as the minute
	wide   tiers.Tier = "wide"   // is never limited
)

var limits = map[tiers.Tier]tiers.Limits{
	tiers.Free: {PerMinute: limit, PerDay: 10 * limit},
	narrow:     {PerMinute: limit, PerDay: limit},
	wide:       {PerMinute: 100_000, PerDay: 1_000_000},
}

// policy is a failure policy by its name.
type policy string

const (
	closed policy = "FailClosed"
	open   policy = "FailOpen"
	local  policy = "FailLocal"
)

var policies = []policy{closed, open, local}

func (p policy) option() ginlimit.Option {
	switch p {
	case open:
		return ginlimit.WithFailurePolicy(ginlimit.FailOpen())
	case local:
		return ginlimit.WithFailurePolicy(ginlimit.FailLocal(ginlimit.NewMemoryLimiter()))
	}
	return ginlimit.WithFailurePolicy(ginlimit.FailClosed())
}

// service is a Gin service with a limiter, a client and a failure policy of its own. It serves GET /atomic
// and GET /separate, which decide the minute and the day together or one by one.
type service struct {
	policy policy
	url    string
	client redis.UniversalClient

	deadline time.Duration // of requests; 0 is none; set before the first one

	mu       sync.Mutex
	verdicts map[string]verdict
}

// verdict is what happened to one request inside.
type verdict struct {
	decision faulttest.Span
	err      error            // of Redis
	outcome  ginlimit.Outcome // the last one told
	local    bool             // decided by the memory limiter
}

const (
	headerUser = "Chaos-User"
	headerTier = "Chaos-Tier"
	headerCall = "Chaos-Call" // identifies the request
)

func newService(t *testing.T, p policy, client redis.UniversalClient,
	opts ...ginlimit.LimiterOption) *service {
	t.Helper()
	s := &service{policy: p, client: client, verdicts: map[string]verdict{}}
	table, err := tiers.NewStore(tiers.Free, limits)
	require.NoError(t, err)
	limiter := ginlimit.NewLimiter(client, opts...)
	limited := []ginlimit.Option{ginlimit.WithTiers(table),
		ginlimit.WithObserver(ginlimit.ObserverFunc(s.observe)), p.option()}
	resolver := ginlimit.FromContext("user_id", "tier")

	router := gin.New()
	router.Use(s.time)
	router.GET("/atomic", ginlimit.New(limiter, resolver, append(limited, ginlimit.WithAtomicWindows())...),
		handle)
	router.GET("/separate", ginlimit.New(limiter, resolver, limited...), handle)
	srv := httptest.NewServer(router)
	t.Cleanup(srv.Close)
	s.url = srv.URL
	return s
}

type verdictKey struct{}

// time authenticates, and measures the decision: until the handler is reached or the request is refused.
func (s *service) time(c *gin.Context) {
	c.Set("user_id", c.GetHeader(headerUser))
	c.Set("tier", c.GetHeader(headerTier))
	v := &verdict{}
	ctx := context.WithValue(c.Request.Context(), verdictKey{}, v)
	if s.deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.deadline)
		defer cancel()
	}
	c.Request = c.Request.WithContext(ctx)
	v.decision.Begin = time.Now()
	c.Next()
	if v.decision.End.IsZero() {
		v.decision.End = time.Now()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.verdicts[c.GetHeader(headerCall)] = *v
}

func handle(c *gin.Context) {
	c.Request.Context().Value(verdictKey{}).(*verdict).decision.End = time.Now()
	c.String(http.StatusOK, "served")
}

func (s *service) observe(ctx context.Context, e ginlimit.Event) {
	v := ctx.Value(verdictKey{}).(*verdict)
	if e.Outcome == ginlimit.StoreError {
		v.err = e.Err
	}
	v.outcome, v.local = e.Outcome, e.Local
}

// verdictOf returns, once, what happened to a request that was answered.
func (s *service) verdictOf(call string) (verdict, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.verdicts[call]
	delete(s.verdicts, call)
	return v, ok
}
