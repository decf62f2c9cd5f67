package ginlimit_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/redisclient"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// An outage is a way for Redis not to answer in time.
type outage struct {
	query string // of the client's URL
	begin func(*testing.T, *site) (end func())
}

// outages are those of which an administrator tells at night. Afterwards Redis answers again.
var outages = map[string]outage{
	"refused": {"", func(_ *testing.T, s *site) func() {
		s.srv.Kill()
		return s.srv.Restart
	}},
	"refused until the pool gave up": {"?pool_size=1", func(_ *testing.T, s *site) func() {
		s.srv.Kill()
		return s.srv.Restart
	}},
	"SYN dropped": {"", func(t *testing.T, s *site) func() {
		s.road.block(t)
		return func() { s.road.unblock(t) }
	}},
	"SYN dropped until the pool gave up": {"?pool_size=1", func(t *testing.T, s *site) func() {
		s.road.block(t)
		return func() { s.road.unblock(t) }
	}},
	"hung": {"", func(_ *testing.T, s *site) func() {
		s.srv.Pause()
		return s.srv.Resume
	}},
	"slow": {"", func(_ *testing.T, s *site) func() {
		s.road.slow(300 * time.Millisecond)
		return func() { s.road.slow(0) }
	}},
	"pool exhausted": {"?pool_size=1", func(t *testing.T, s *site) func() {
		hung := s.rdb.Conn() // the application's own use of the client, which does not end
		require.NoError(t, hung.Ping(t.Context()).Err())
		return func() { require.NoError(t, hung.Close()) }
	}},
}

// site is a Redis, the road to it and a client of redisclient that takes the road.
type site struct {
	srv  *redistest.Server
	road *road
	rdb  *redis.Client
}

func newSite(t *testing.T, query string) *site {
	t.Helper()
	srv := redistest.Start(t)
	road := newRoad(t, srv.Addr)
	return &site{srv, road, limiterClient(t, "redis://"+road.Addr+query)}
}

func limiterClient(t *testing.T, url string) *redis.Client {
	t.Helper()
	c, err := redisclient.New(url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c.(*redis.Client)
}

// Whatever Redis does, a decision ends within the limiter's timeout, giving back included; after five failures it takes
// no time at all; and two seconds after Redis is back it counts again (G2, Q36, Q46).
func TestLatencyBound(t *testing.T) {
	captureLogs(t)
	watch := newMetronome(t)
	for name, o := range outages {
		for mode, opts := range modes {
			for _, connections := range []string{"warm", "cold"} {
				t.Run(fmt.Sprintf("%s, %s, %s", name, mode, connections), func(t *testing.T) {
					t.Parallel()
					s := newSite(t, o.query)
					took := &stopwatch{}
					limited := ginlimit.New(ginlimit.NewLimiter(s.rdb), resolver, append(opts[:len(opts):len(opts)], ginlimit.WithTiers(table(t, 1, 9)))...)
					api := serve(t, took.measure, limited)
					if connections == "warm" {
						awaitDecisions(t, api)
					}

					end := o.begin(t, s)
					took.restart()
					began := time.Now()
					for i := 0; i < 50 || time.Since(began) < 700*time.Millisecond; i++ { // long enough for a probe
						r := api.as(redistest.ID(t))
						require.Equal(t, http.StatusServiceUnavailable, r.StatusCode)
						require.Equal(t, "rate_limiter_unavailable", r.apiError(t).Code)
						if i > 50 {
							time.Sleep(time.Millisecond)
						}
					}
					failed := took.all()
					for i, d := range failed {
						require.LessOrEqual(t, d.length(), watch.allow(ginlimit.DefaultTimeout, d), "decision %d", i)
					}
					require.Less(t, median(failed[5:]), time.Millisecond, "an open breaker does not ask")

					end()
					took.restart()
					back := awaitDecisions(t, api)
					require.LessOrEqual(t, back.length(), watch.allow(2*time.Second, back)+watch.excuse(took.all()), "Redis is back")
				})
			}
		}
	}
}

// A pool that gave up on a server whose SYNs are dropped dials and pauses in turn, and the breaker has a rhythm of its own.
// Whatever both are at when the network is back, limits are enforced two seconds later.
func TestBackTwoSecondsAfterDroppedSYNs(t *testing.T) {
	captureLogs(t)
	watch := newMetronome(t)
	srv := redistest.Start(t)
	var wg sync.WaitGroup
	for i := range 10 {
		road := newRoad(t, srv.Addr)
		l := ginlimit.NewLimiter(limiterClient(t, "redis://"+road.Addr+"?pool_size=1"))
		var failed []span
		decides := func() bool {
			begin := time.Now()
			_, err := l.Check(t.Context(), "alice", 1, time.Minute)
			failed = append(failed, span{begin, time.Now()})
			return err == nil
		}
		wg.Go(func() {
			road.block(t)
			begin := time.Now()
			decides()
			time.Sleep(time.Duration(i/2) * 100 * time.Millisecond) // the breaker opens later
			for ; time.Since(begin) < 1050*time.Millisecond+time.Duration(i%2)*500*time.Millisecond; time.Sleep(10 * time.Millisecond) {
				if decides() {
					t.Error("a SYN was answered")
				}
			}
			road.unblock(t)
			failed = nil
			for !decides() {
				time.Sleep(10 * time.Millisecond)
			}
			back := span{failed[0].begin, time.Now()}
			if allowed := watch.allow(2*time.Second, back) + watch.excuse(failed); back.length() > allowed {
				t.Errorf("back after %v, want %v", back.length(), allowed)
			}
		})
	}
	wg.Wait()
}

// awaitDecisions waits until a limit of one is enforced: Redis admits a call of a user, and rejects the next. A machine that
// is busy may turn either into a 503.
func awaitDecisions(t *testing.T, api *api) (waited span) {
	t.Helper()
	begin := time.Now()
	for {
		id := redistest.ID(t)
		if first := api.as(id); first.StatusCode == http.StatusOK {
			require.Equal(t, "1 0 minute", first.limits(t))
			if second := api.as(id).StatusCode; second != http.StatusServiceUnavailable {
				require.Equal(t, http.StatusTooManyRequests, second)
				return span{begin, time.Now()}
			}
		}
		require.Less(t, time.Since(begin), time.Minute)
		time.Sleep(time.Millisecond)
	}
}

// The budget is that of a whole decision, giving back included, for which it would have needed 180 ms.
func TestLatencyBoundOfGivingBack(t *testing.T) {
	logs := captureLogs(t)
	watch := newMetronome(t)
	s := newSite(t, "")
	took := &stopwatch{}
	rejectedByDay := func() answer {
		id := redistest.ID(t)
		full := redis.Z{Score: float64(serverTime(t, s.srv)), Member: "a request"}
		require.NoError(t, s.srv.Client(t).ZAdd(t.Context(), "ratelimit:"+id+":86400", full).Err())
		limited := ginlimit.New(ginlimit.NewLimiter(s.rdb), resolver, ginlimit.WithTiers(table(t, 1, 1)))
		return serve(t, took.measure, limited).as(id)
	}
	require.Eventually(t, func() bool { return rejectedByDay().StatusCode == http.StatusTooManyRequests }, 10*time.Second, time.Millisecond, "loads the scripts")
	require.Empty(t, s.srv.Client(t).Keys(t.Context(), "*:60").Val(), "given back")
	require.NotContains(t, logs.String(), "could not be given back")

	scripts := 0
	s.rdb.AddHook(afterScript(func() {
		if scripts++; scripts == 2 {
			s.road.slow(180 * time.Millisecond)
		}
	}))
	took.restart()
	require.Equal(t, http.StatusTooManyRequests, rejectedByDay().StatusCode, "the day has answered")
	d := took.all()[0]
	require.LessOrEqual(t, d.length(), watch.allow(ginlimit.DefaultTimeout, d))
	require.Contains(t, logs.String(), "could not be given back", "nor is it silent")
}

// A thousand callers of a Redis that hangs all return in time, and leave nothing behind (G3).
func TestAThousandCallersOfAHungRedis(t *testing.T) {
	captureLogs(t)
	watch := newMetronome(t)
	srv := redistest.Start(t)
	l := ginlimit.NewLimiter(limiterClient(t, srv.URL()))
	_, err := l.Check(t.Context(), "warm-up", 1, time.Minute)
	require.NoError(t, err)
	before := runtime.NumGoroutine()

	srv.Pause()
	var wg sync.WaitGroup
	calls := make([]span, 1000)
	for i := range calls {
		wg.Go(func() {
			begin := time.Now()
			_, err := l.Check(t.Context(), fmt.Sprint("user", i), 1, time.Minute)
			calls[i] = span{begin, time.Now()}
			if err == nil {
				t.Error("a hung Redis has decided")
			}
		})
	}
	wg.Wait()
	const computing = 400 * time.Millisecond // 0.4 ms a call, under the race detector
	for _, c := range calls {
		require.LessOrEqual(t, c.length(), watch.allow(ginlimit.DefaultTimeout+computing, c))
	}
	// A dial goes on after its caller left.
	for begin := time.Now(); runtime.NumGoroutine() > before; time.Sleep(10 * time.Millisecond) {
		require.Less(t, time.Since(begin), 10*time.Second, "%d goroutines, %d before", runtime.NumGoroutine(), before)
	}
}

// Callers that do not wait say nothing of Redis: however many leave, the breaker stays closed.
func TestCallersThatLeaveAreNoOutage(t *testing.T) {
	logs := captureLogs(t)
	s := newSite(t, "")
	l := ginlimit.NewLimiter(s.rdb)
	check := func(ctx context.Context) error {
		_, err := l.Check(ctx, "alice", 100, time.Minute)
		return err
	}
	require.NoError(t, check(t.Context()))
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, check(ctx), context.Canceled)
	}
	require.NoError(t, check(t.Context()), "those who had left before")

	s.road.slow(20 * time.Millisecond)
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		require.Error(t, check(ctx))
		cancel()
	}
	s.road.slow(0)
	require.NoError(t, check(t.Context()), "those whose own deadline passed")
	s.road.slow(20 * time.Millisecond)

	// Over a real socket: the client hangs up while Redis is at work.
	api := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 100, 100))))
	impatient := &http.Client{Timeout: 5 * time.Millisecond, Transport: &http.Transport{DisableKeepAlives: true}}
	left := 0
	for range 20 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, api.URL+"/v1/chat", nil)
		require.NoError(t, err)
		req.Header.Set(headerUser, "bob")
		resp, err := impatient.Do(req)
		if err != nil {
			left++
			continue
		}
		_ = resp.Body.Close() // the machine was too busy for a timer of 5 ms
	}
	require.Greater(t, left, 10)
	s.road.slow(0)
	require.Eventually(t, func() bool { return api.as("carol").StatusCode == http.StatusOK }, 10*time.Second, time.Millisecond, "those who hung up")
	require.NotContains(t, logs.String(), "Redis does not answer")
}

// A client that leaves between the minute and the day: the minute's slot goes back all the same.
func TestAClientThatLeavesHalfWay(t *testing.T) {
	logs := captureLogs(t)
	s := newSite(t, "")
	id := redistest.ID(t)
	var leave atomic.Pointer[context.CancelFunc]
	s.rdb.AddHook(afterScript(func() {
		if cancel := leave.Swap(nil); cancel != nil {
			(*cancel)()
		}
	}))
	api := serve(t, func(c *gin.Context) {
		ctx, cancel := context.WithCancel(c.Request.Context())
		defer cancel()
		leave.Store(&cancel)
		c.Request = c.Request.WithContext(ctx)
		c.Next()
	}, ginlimit.New(ginlimit.NewLimiter(s.rdb), resolver))
	require.Equal(t, 499, api.as(id).StatusCode)
	require.Nil(t, leave.Load(), "it left")
	require.Zero(t, api.Handled.Load())
	require.Positive(t, s.srv.Calls(t, "zadd"), "the minute had admitted it")
	require.Empty(t, s.srv.Client(t).Keys(t.Context(), "*").Val(), "and has it no more")
	require.Empty(t, logs.String())
}

// afterScript is a go-redis hook that is called when a script has been answered.
type afterScript func()

func (f afterScript) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f afterScript) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (f afterScript) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil && (cmd.Name() == "evalsha" || cmd.Name() == "eval") {
			f()
		}
		return err
	}
}

// span is a stretch of time.
type span struct{ begin, end time.Time }

func (s span) length() time.Duration { return s.end.Sub(s.begin) }

func median(spans []span) time.Duration {
	lengths := make([]time.Duration, len(spans))
	for i, s := range spans {
		lengths[i] = s.length()
	}
	slices.Sort(lengths)
	return lengths[len(lengths)/2]
}

// stopwatch measures decisions: from before the limiter to the handler, or to its refusal.
type stopwatch struct {
	mu   sync.Mutex
	took []span
}

func (s *stopwatch) measure(c *gin.Context) {
	begin := time.Now()
	c.Next()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took = append(s.took, span{begin, time.Now()})
}

func (s *stopwatch) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took = nil
}

func (s *stopwatch) all() []span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.took)
}

// metronome notes how late this process was because its machine had no processor for it. Whatever bound a timer keeps
// is exceeded by as much, so allow adds that: a busy machine neither fails a test nor, when it is idle again, excuses one.
type metronome struct {
	mu     sync.Mutex
	beats  []beat
	waited map[string]time.Duration // of each thread
}

// beat is a moment, and how much was waited for in vain since the beat before.
type beat struct {
	at   time.Time
	late time.Duration
}

func newMetronome(t *testing.T) *metronome {
	t.Helper()
	m := &metronome{}
	m.beat(time.Now())
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			due := time.Now().Add(5 * time.Millisecond)
			time.Sleep(time.Until(due))
			m.beat(due)
		}
	})
	t.Cleanup(func() {
		stop()
		wg.Wait()
	})
	return m
}

// beat notes how late it comes itself, or how long a thread of this process was ready to run and did not, whichever is more.
func (m *metronome) beat(due time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	waited := threads()
	now := beat{at: time.Now()}
	if m.waited != nil {
		now.late = max(0, now.at.Sub(due))
		for thread, d := range waited {
			now.late = max(now.late, d-m.waited[thread])
		}
	}
	m.beats, m.waited = append(m.beats, now), waited
}

// threads tells how long each was ready to run and did not: the second field of Linux's schedstat, in nanoseconds.
func threads() map[string]time.Duration {
	waited := map[string]time.Duration{}
	names, _ := filepath.Glob("/proc/self/task/*/schedstat")
	for _, name := range names {
		raw, _ := os.ReadFile(name)
		if fields := strings.Fields(string(raw)); len(fields) == 3 {
			ns, _ := strconv.ParseInt(fields[1], 10, 64)
			waited[name] = time.Duration(ns)
		}
	}
	return waited
}

// allow is a bound as this machine could keep it during s. Computing, under the race detector, on a busy machine, may take 100 ms; and whatever
// is bounded here is a chain of less than eight waits, each of which may have met one of the worst delays.
func (m *metronome) allow(bound time.Duration, s span) time.Duration {
	return bound + 100*time.Millisecond + m.late(s)
}

func (m *metronome) late(s span) (sum time.Duration) {
	m.beat(time.Now())
	m.mu.Lock()
	defer m.mu.Unlock()
	index := func(at time.Time) int {
		i, _ := slices.BinarySearchFunc(m.beats, at, func(b beat, at time.Time) int { return b.at.Compare(at) })
		return i
	}
	var worst []time.Duration
	for _, b := range m.beats[index(s.begin):min(len(m.beats), index(s.end)+1)] {
		worst = append(worst, b.late)
	}
	slices.Sort(worst)
	for _, late := range worst[max(0, len(worst)-8):] {
		sum += late
	}
	return sum
}

// excuse is what may have been lost to decisions that failed for the lateness of this machine alone: each took its time,
// and opened the breaker for half a second.
func (m *metronome) excuse(failed []span) (sum time.Duration) {
	for _, s := range failed {
		if m.late(s) > 20*time.Millisecond {
			sum += s.length() + 500*time.Millisecond
		}
	}
	return sum
}

// road is the way to a Redis: a TCP relay that a test can make slow, or block so that nobody answers a SYN.
type road struct {
	Addr string

	listener *net.TCPListener
	target   string
	delay    atomic.Int64 // of each reply, in nanoseconds
	serving  sync.WaitGroup

	mu      sync.Mutex
	changed sync.Cond
	blocked bool
	ended   bool
	conns   map[net.Conn]struct{} // that are relayed
	queue   []net.Conn            // that wait to be accepted while the road is blocked
}

func newRoad(t *testing.T, target string) *road {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &road{Addr: l.Addr().String(), listener: l.(*net.TCPListener), target: target, conns: map[net.Conn]struct{}{}}
	r.changed.L = &r.mu
	r.serving.Go(r.accept)
	t.Cleanup(func() {
		r.mu.Lock()
		r.ended = true
		r.changed.Broadcast()
		_ = l.Close()
		r.cut()
		r.mu.Unlock()
		r.serving.Wait()
	})
	return r
}

// slow delays each reply from now on.
func (r *road) slow(delay time.Duration) { r.delay.Store(int64(delay)) }

// block cuts all connections. The kernel then drops the SYN of new ones: nobody accepts any, and as many as may wait for
// that do.
func (r *road) block(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blocked = true
	r.cut()
	r.backlog(t, 0)
	for range 10 {
		c, err := net.DialTimeout("tcp", r.Addr, 20*time.Millisecond)
		if err != nil {
			require.True(t, err.(net.Error).Timeout(), "%v", err)
			return
		}
		r.queue = append(r.queue, c)
	}
	t.Fatal("the backlog does not fill")
}

func (r *road) unblock(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blocked = false
	r.cut()
	r.backlog(t, 128)
	r.changed.Broadcast()
}

// backlog sets how many connections may wait to be accepted.
func (r *road) backlog(t *testing.T, n int) {
	t.Helper()
	raw, err := r.listener.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) { err = syscall.Listen(int(fd), n) }))
	require.NoError(t, err)
}

func (r *road) cut() {
	for c := range r.conns {
		_ = c.Close()
	}
	for _, c := range r.queue {
		_ = c.Close()
	}
	r.queue = nil
}

func (r *road) accept() {
	for {
		c, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.serving.Go(func() { r.relay(c) })
		r.mu.Lock()
		for r.blocked && !r.ended {
			r.changed.Wait()
		}
		r.mu.Unlock()
	}
}

func (r *road) relay(client net.Conn) {
	defer client.Close()
	if !r.enter(client) {
		return
	}
	defer r.leave(client)
	server, err := net.Dial("tcp", r.target)
	if err != nil {
		return
	}
	defer server.Close()
	r.serving.Go(func() {
		defer server.Close()
		_, _ = io.Copy(server, client)
	})
	reply := make([]byte, 64<<10)
	for {
		n, err := server.Read(reply)
		if err != nil {
			return
		}
		time.Sleep(time.Duration(r.delay.Load()))
		if _, err := client.Write(reply[:n]); err != nil {
			return
		}
	}
}

func (r *road) enter(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.blocked || r.ended {
		return false
	}
	r.conns[c] = struct{}{}
	return true
}

func (r *road) leave(c net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
}
