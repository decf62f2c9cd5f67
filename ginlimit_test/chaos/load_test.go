package chaos

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/faulttest"
	"github.com/gin-tiers/ratelimit/tiers"
)

// user is somebody who calls without pause, and what there is to know of it.
type user struct {
	profile string
	id      string
	tier    tiers.Tier
	path    string
	every   time.Duration
	minute  []faulttest.Span // admitted before the run, as far as the minute goes
	day     []faulttest.Span // as far as the day goes
}

// The profiles. Most calls of most users are for the atomic route, which is what the README recommends.
const (
	free    = "free"    // is never limited
	eager   = "eager"   // has its whole limit when the run begins, and soon none of it
	full    = "full"    // has used up its limit: some of it comes back every second, as the window slides
	daily   = "daily"   // has used up its day, not its minute: every call gives a slot back
	visitor = "visitor" // is a full one who calls all services in turn: a fleet shares one limit
)

// call is one request and its answer.
type call struct {
	user    *user
	service *service
	sent    time.Time
	back    time.Time
	err     error // of HTTP
	status  int
	header  http.Header
	body    string
	verdict verdict
}

func (c *call) String() string {
	return fmt.Sprintf("%s, %s of a %s user (%v)", c.service.policy, c.user.path, c.user.profile, c.verdict.err)
}

// byRedis tells whether Redis decided it, as against a failure policy.
func (c *call) byRedis() bool { return c.verdict.err == nil && c.verdict.outcome != "" }

// when is the span within which the request was decided, as its caller knows it.
func (c *call) when() faulttest.Span { return faulttest.Span{Begin: c.sent, End: c.back} }

// load is all users of a run, calling.
type load struct {
	stop func()

	client *http.Client
	ids    atomic.Int64 // of calls

	mu    sync.Mutex
	calls []*call
}

func startLoad(t *testing.T, services []*service, users map[*service][]*user) *load {
	t.Helper()
	l := &load{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32},
		Timeout: 10 * time.Second}}
	ctx, cancel := context.WithCancel(context.Background())
	var callers sync.WaitGroup
	run := func(u *user, services ...*service) {
		callers.Go(func() {
			tick := time.NewTicker(u.every)
			defer tick.Stop()
			for i := 0; ctx.Err() == nil; i++ {
				l.send(u, services[i%len(services)])
				<-tick.C
			}
		})
	}
	for s, of := range users {
		for _, u := range of {
			if s == nil {
				for i := range services { // each caller begins elsewhere
					run(u, append(services[i:len(services):len(services)], services[:i]...)...)
				}
				continue
			}
			run(u, s)
		}
	}
	l.stop = sync.OnceFunc(func() {
		cancel()
		callers.Wait()
		l.client.CloseIdleConnections()
	})
	t.Cleanup(l.stop)
	return l
}

// send makes one call.
func (l *load) send(u *user, s *service) {
	c := l.exchange(u, s, fmt.Sprint(l.ids.Add(1)))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, c)
}

// burst makes many calls of a user at once.
func (l *load) burst(u *user, services []*service, each int) {
	var calls sync.WaitGroup
	for range each {
		for _, s := range services {
			calls.Go(func() { l.send(u, s) })
		}
	}
	calls.Wait()
}

func (l *load) exchange(u *user, s *service, id string) *call {
	c := &call{user: u, service: s}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, s.url+u.path, nil)
	if err != nil {
		c.err = err
		return c
	}
	req.Header.Set(headerUser, u.id)
	req.Header.Set(headerTier, string(u.tier))
	req.Header.Set(headerCall, id)
	c.sent = time.Now()
	resp, err := l.client.Do(req)
	if err != nil {
		c.back, c.err = time.Now(), err
		return c
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	c.back, c.err, c.status, c.header, c.body = time.Now(), err, resp.StatusCode, resp.Header, string(body)
	// The service files its verdict when the whole answer is on its way.
	for wait := time.Now(); time.Since(wait) < 5*time.Second; time.Sleep(50 * time.Microsecond) {
		if v, ok := s.verdictOf(id); ok {
			c.verdict = v
			return c
		}
	}
	c.err = fmt.Errorf("call %s has no verdict", id)
	return c
}

// all returns the calls so far.
func (l *load) all() []*call {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls[:len(l.calls):len(l.calls)]
}

// some tells whether there was such a call.
func (l *load) some(wanted func(*call) bool) bool {
	for _, c := range l.all() {
		if wanted(c) {
			return true
		}
	}
	return false
}

// rejectedByRedis tells that limits are enforced.
func (c *call) rejectedByRedis() bool { return c.byRedis() && c.verdict.outcome == ginlimit.Rejected }
