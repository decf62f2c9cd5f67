package ginlimit

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/luascripts"
)

// model is the limiter as one would explain it: a list of the admitted requests of each key, read
// from end to end for every question.
type model struct {
	logs map[string][]admission // in the order of admission
	ttl  map[string]time.Duration
}

type admission struct {
	at     int64 // Unix milliseconds
	member string
}

func newModel() *model {
	return &model{logs: map[string][]admission{}, ttl: map[string]time.Duration{}}
}

// inWindow are the admissions that count at now: those less than a window old, and those that a
// clock which was set back has still ahead of it.
func inWindow(log []admission, now int64, window time.Duration) (in []admission) {
	for _, a := range log {
		if now-a.at < window.Milliseconds() {
			in = append(in, a)
		}
	}
	return in
}

func contains(log []admission, member string) bool {
	return slices.ContainsFunc(log, func(a admission) bool { return a.member == member })
}

// reply is what a call that is not in the log would hear: come in, or come back when enough
// admissions have left, one after the other, if nobody else comes. That is never later than after
// one window.
func reply(log []admission, now int64, b luascripts.Budget) luascripts.Reply {
	count := len(inWindow(log, now, b.Window()))
	if count < b.Limit() {
		return luascripts.Reply{Allowed: true, Count: count}
	}
	retry := b.Window()
	for _, a := range log {
		wait := time.Duration(a.at-now)*time.Millisecond + b.Window() // until this one leaves
		if wait > 0 && wait < retry && len(inWindow(log, now+wait.Milliseconds(), b.Window())) < b.Limit() {
			retry = wait
		}
	}
	return luascripts.Reply{Count: count, RetryAfter: retry}
}

func (m *model) admit(now int64, member string, keys []string, budgets []luascripts.Budget) (replies []luascripts.Reply) {
	for i, key := range keys {
		m.keep(key, inWindow(m.logs[key], now, budgets[i].Window()))
		r := reply(m.logs[key], now, budgets[i])
		if contains(m.logs[key], member) {
			r = luascripts.Reply{Allowed: true, Count: len(m.logs[key])}
		}
		replies = append(replies, r)
		if !r.Allowed {
			return replies
		}
	}
	for i, key := range keys {
		if !contains(m.logs[key], member) {
			m.keep(key, append(m.logs[key], admission{now, member}))
			m.ttl[key] = budgets[i].Window() + time.Second
			replies[i].Count++
		}
	}
	return replies
}

func (m *model) peek(now int64, keys []string, budgets []luascripts.Budget) (replies []luascripts.Reply) {
	for i, key := range keys {
		replies = append(replies, reply(m.logs[key], now, budgets[i]))
	}
	return replies
}

// giveBack leaves the TTL that the newest of the others gave the key, if that is sooner.
func (m *model) giveBack(now int64, member string, keys []string, budgets []luascripts.Budget) {
	for i, key := range keys {
		if !contains(m.logs[key], member) {
			continue
		}
		m.keep(key, slices.DeleteFunc(m.logs[key], func(a admission) bool { return a.member == member }))
		newest := int64(math.MinInt64)
		for _, a := range m.logs[key] {
			newest = max(newest, a.at)
		}
		if len(m.logs[key]) > 0 {
			left := time.Duration(newest-now)*time.Millisecond + budgets[i].Window() + time.Second
			m.ttl[key] = min(m.ttl[key], max(time.Millisecond, left))
		}
	}
}

func (m *model) reset(keys []string) {
	for _, key := range keys {
		m.keep(key, nil)
	}
}

// keep sets the log of a key. An empty one is no key.
func (m *model) keep(key string, log []admission) {
	m.logs[key] = log
	if len(log) == 0 {
		delete(m.logs, key)
		delete(m.ttl, key)
	}
}

// subject is a store to hold against the model.
type subject struct {
	store
	clock *clock
	still *stillRedis // nil: memory
	key   string      // one that no other subject has
}

// contents is what is kept under a key: the log in order of time, and the bounds of its TTL, which
// are apart by what the server's clock moved while it was read. No TTL: 0 and 0.
type contents struct {
	log          []admission
	ttl, ttlMost time.Duration
}

// look returns what the last call left of a key that it named.
func (s subject) look(key string) (c contents) {
	if s.still != nil {
		return s.still.seen[key]
	}
	log, _ := s.store.(*memoryStore).logs.Peek(key)
	for i := range log.len() {
		c.log = append(c.log, admission(log.entries[i]))
	}
	return c
}

// subjects are the stores under test: each returns a function that makes one with nothing in it.
var subjects = map[string]func(t *testing.T) func() subject{
	"redis": func(t *testing.T) func() subject {
		rdb := redistest.Start(t).Client(t) // a key without a TTL may stay behind
		for _, script := range []*redis.Script{luascripts.SlidingWindow, luascripts.PeekScript, luascripts.GiveBackScript, luascripts.ResetScript} {
			require.NoError(t, script.Load(t.Context(), rdb).Err())
		}
		return func() subject {
			c := newClock()
			still := &stillRedis{rdb: rdb, seen: map[string]contents{}, ttl: map[string]time.Duration{}}
			return subject{&redisStore{rdb: still, clock: c.now}, c, still, redistest.ID(t)}
		}
	},
	"memory": func(t *testing.T) func() subject {
		return func() subject {
			c := newClock()
			return subject{newMemoryStore(c.now), c, nil, redistest.ID(t)}
		}
	},
}

func forEachSubject(t *testing.T, test func(t *testing.T, newSubject func() subject)) {
	for name, start := range subjects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t))
		})
	}
}

// stillRedis is a Redis on which no TTL runs down between two calls, so that a clock that only the
// test moves and the server's own cannot contradict each other, however slow the machine: each
// script runs in a transaction, within which nothing expires, that first gives the keys the TTL
// they are held at and in the end takes it away again. It reads back what the script left.
type stillRedis struct {
	redis.Scripter // of which the stores use EvalSha alone, for scripts that are loaded
	rdb            *redis.Client

	seen map[string]contents
	ttl  map[string]time.Duration // of the keys that are held at one; others have none
}

func (r *stillRedis) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	pipe := r.rdb.TxPipeline()
	began := pipe.Time(ctx)
	for _, key := range keys {
		if ttl, ok := r.ttl[key]; ok {
			pipe.PExpire(ctx, key, ttl)
		}
	}
	cmd := pipe.EvalSha(ctx, sha, keys, args...)
	logs, expiries := make([]*redis.ZSliceCmd, len(keys)), make([]*redis.DurationCmd, len(keys))
	for i, key := range keys {
		logs[i], expiries[i] = pipe.ZRangeWithScores(ctx, key, 0, -1), pipe.PExpireTime(ctx, key)
		pipe.Persist(ctx, key)
	}
	ended := pipe.Time(ctx)
	if _, err := pipe.Exec(ctx); err != nil {
		return redis.NewCmdResult(nil, err)
	}
	for i, key := range keys {
		var c contents
		for _, z := range logs[i].Val() {
			c.log = append(c.log, admission{int64(z.Score), z.Member.(string)})
		}
		if at := expiries[i].Val(); at > 0 {
			c.ttl = at - time.Duration(ended.Val().UnixMilli())*time.Millisecond
			c.ttlMost = at - time.Duration(began.Val().UnixMilli())*time.Millisecond
		}
		r.seen[key] = c
	}
	return cmd
}

// hold sets the TTL that a key has at the next call: ttl, but no less than a transaction could last.
func (r *stillRedis) hold(key string, ttl time.Duration) time.Duration {
	r.ttl[key] = max(ttl, 30*time.Second)
	return r.ttl[key]
}

// Random histories: each reply, and what is then kept, is the model's.
//
//	go test ./ginlimit -run TestModel -rapid.checks=100000 -rapid.steps=100
func TestModel(t *testing.T) {
	forEachSubject(t, func(t *testing.T, newSubject func() subject) {
		rapid.Check(t, func(t *rapid.T) {
			h := newHistory(newSubject())
			for range 3 { // of -rapid.steps: what is rare takes a while, as a repeat after the window slid
				t.Repeat(map[string]func(*rapid.T){"step": h.step})
			}
		})
	})
}

// history is one run of a subject beside the model.
type history struct {
	subject
	model    *model
	prefixes []string // of the users' keys
	members  []string // all that there were
	now      int64    // ms after epoch
	lines    []string
}

func newHistory(s subject) *history {
	return &history{subject: s, model: newModel(), prefixes: []string{s.key + "-1", s.key + "-2"}}
}

// The windows that a call may be about, and the whole of what a user may have.
var (
	windowSets = [][]string{{":60"}, {":86400"}, {":60", ":86400"}, {":60", ":images:60", ":86400", ":images:86400"}, {":1", ":60"}}
	lengths    = map[string]time.Duration{":1": time.Second, ":60": minute, ":images:60": minute, ":86400": day, ":images:86400": day}
)

// step draws a step and takes it on both sides. Most steps are calls, most calls admit.
func (h *history) step(t *rapid.T) {
	do := rapid.SampledFrom([]string{"admit", "admit", "admit", "repeat", "repeat", "peek", "give back", "reset", "wait", "to an edge", "to an edge", "clock back"}).Draw(t, "do")
	switch do {
	case "wait":
		h.move(rapid.OneOf(
			rapid.SampledFrom([]int64{1, 999, 1_000, 1_001, 59_999, 60_000, 60_001, 86_399_999, 86_400_000, 86_400_001}),
			rapid.Int64Range(1, 70_000)).Draw(t, "ms"))
		return
	case "clock back":
		h.move(-rapid.OneOf(
			rapid.SampledFrom([]int64{1, 1_000, 60_000, 3_600_000, 86_400_000}),
			rapid.Int64Range(1, 70_000)).Draw(t, "ms"))
		return
	}

	user := rapid.IntRange(0, len(h.prefixes)-1).Draw(t, "user")
	suffixes := rapid.SampledFrom(windowSets).Draw(t, "windows")
	var keys []string
	var budgets []luascripts.Budget
	for _, suffix := range suffixes {
		limit := rapid.OneOf(rapid.IntRange(1, 4), rapid.SampledFrom([]int{0, -1, math.MaxInt, math.MinInt})).Draw(t, "limit")
		keys = append(keys, h.prefixes[user]+suffix)
		budgets = append(budgets, luascripts.NewBudget(limit, lengths[suffix]))
	}

	if do == "to an edge" { // of an entry's time in the window, or one millisecond off
		var exits []int64
		for i, key := range keys {
			for _, a := range h.model.logs[key] {
				exits = append(exits, a.at-epoch+budgets[i].Window().Milliseconds())
			}
		}
		if len(exits) > 0 {
			h.move(rapid.SampledFrom(exits).Draw(t, "exit") + rapid.Int64Range(-1, 1).Draw(t, "off") - h.now)
		}
		return
	}

	member := fmt.Sprint("m", len(h.members)+1)
	if len(h.members) > 0 && (do == "repeat" || do == "give back") {
		latest := h.members[len(h.members)-1]
		member = rapid.OneOf(rapid.SampledFrom(h.members), rapid.Just(latest)).Draw(t, "member")
	} else if do == "admit" || do == "repeat" {
		h.members = append(h.members, member)
	}

	ctx, now := t.Context(), epoch+h.now
	var got, want []luascripts.Reply
	var err error
	switch do {
	case "admit", "repeat":
		want = h.model.admit(now, member, keys, budgets)
		got, err = h.store.admit(ctx, member, keys, budgets)
	case "peek":
		member = ""
		want = h.model.peek(now, keys, budgets)
		got, err = h.store.peek(ctx, keys, budgets)
	case "give back":
		h.model.giveBack(now, member, keys, budgets)
		err = h.store.giveBack(ctx, member, keys, budgets)
	case "reset":
		member = ""
		h.model.reset(keys)
		err = h.store.reset(ctx, keys)
	}
	h.lines = append(h.lines, fmt.Sprintf("%12d ms  user %d  %-9s %-4s", h.now, user+1, do, member))
	for i, b := range budgets {
		h.print("  %s of %d", suffixes[i], b.Limit())
	}
	if err != nil {
		h.fail(t, "error: %v", err)
	}
	if len(want) > 0 {
		h.print(" -> %s", text(want))
	}
	if !slices.Equal(want, got) {
		h.fail(t, "got %s, want %s", text(got), text(want))
	}
	for i, key := range keys {
		h.compare(t, suffixes[i], key)
	}
	if s, ok := h.store.(*memoryStore); ok {
		requireCounted(t, s)
	}
}

func (h *history) move(ms int64) {
	h.now += ms
	h.clock.set(h.now)
}

// compare holds what the subject keeps under a key against the model.
func (h *history) compare(t *rapid.T, suffix, key string) {
	got, want := h.look(key), slices.Clone(h.model.logs[key])
	byTime := func(a, b admission) int {
		return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.member, b.member))
	}
	if !slices.IsSortedFunc(got.log, func(a, b admission) int { return cmp.Compare(a.at, b.at) }) {
		h.fail(t, "%s is out of order: %v", suffix, got.log)
	}
	slices.SortFunc(got.log, byTime)
	slices.SortFunc(want, byTime)
	if !slices.Equal(want, got.log) {
		h.fail(t, "%s now holds %v, want %v", suffix, got.log, want)
	}
	if ttl, ok := h.model.ttl[key]; ok && h.still != nil {
		if ttl < got.ttl || ttl > got.ttlMost {
			h.fail(t, "%s has a TTL of %v, want %v", suffix, got.ttlMost, ttl)
		}
		h.model.ttl[key] = h.still.hold(key, ttl)
	}
}

func (h *history) print(format string, args ...any) {
	h.lines[len(h.lines)-1] += fmt.Sprintf(format, args...)
}

func (h *history) fail(t *rapid.T, format string, args ...any) {
	t.Helper()
	t.Fatalf("%s\n%s", strings.Join(h.lines, "\n"), fmt.Sprintf(format, args...))
}

// text writes replies as a timeline shows them.
func text(replies []luascripts.Reply) string {
	words := []string{}
	for _, r := range replies {
		if r.Allowed {
			words = append(words, fmt.Sprint("in: ", r.Count))
		} else {
			words = append(words, fmt.Sprint("out: ", r.Count, ", retry after ", r.RetryAfter))
		}
	}
	return strings.Join(words, "; ")
}

// call admits one request of a member of its own.
func (s subject) call(t require.TestingT, limit int, window time.Duration) luascripts.Reply {
	replies, err := s.admit(context.Background(), uuid.NewString(), []string{s.key}, []luascripts.Budget{luascripts.NewBudget(limit, window)})
	require.NoError(t, err)
	return replies[0]
}

// Whenever calls arrive, no span of a window's length admits more than the limit, and none is
// refused while its span has room.
func TestRandomArrivals(t *testing.T) {
	forEachSubject(t, func(t *testing.T, newSubject func() subject) {
		rapid.Check(t, func(t *rapid.T) {
			limit, window, s := rapid.IntRange(1, 6).Draw(t, "limit"), drawWindow(t), newSubject()
			var now int64
			var admitted []int64
			for i, gap := range rapid.SliceOfN(drawGap(window, limit), 10, 60).Draw(t, "gaps") {
				now += gap
				s.clock.set(now)
				r := s.call(t, limit, window)
				if r.Allowed {
					admitted = append(admitted, now)
				}
				span := 0 // admissions in (now-window, now]
				for _, at := range admitted {
					if at > now-window.Milliseconds() {
						span++
					}
				}
				require.LessOrEqual(t, span, limit, "call %d at %d ms: limit %d in %v, admitted at %v", i, now, limit, window, admitted)
				require.True(t, r.Allowed || span == limit, "call %d at %d ms is refused: limit %d in %v, admitted at %v", i, now, limit, window, admitted)
			}
		})
	})
}

// A lone caller who never exceeds the limit in any span is never refused, however bursty.
func TestLoneCallerWithinTheLimit(t *testing.T) {
	forEachSubject(t, func(t *testing.T, newSubject func() subject) {
		rapid.Check(t, func(t *rapid.T) {
			limit, window, s := rapid.IntRange(1, 6).Draw(t, "limit"), drawWindow(t), newSubject()
			var calls []int64
			var now int64
			for i, gap := range rapid.SliceOfN(drawGap(window, limit), 10, 60).Draw(t, "gaps") {
				now += gap
				if i >= limit {
					now = max(now, calls[i-limit]+window.Milliseconds())
				}
				calls = append(calls, now)
				s.clock.set(now)
				require.True(t, s.call(t, limit, window).Allowed, "limit %d in %v, the last of %v", limit, window, calls)
			}
		})
	})
}

func drawWindow(t *rapid.T) time.Duration {
	return time.Duration(rapid.IntRange(1, 5).Draw(t, "window")) * time.Second
}

// drawGap makes the milliseconds between two calls, many of them at an edge.
func drawGap(window time.Duration, limit int) *rapid.Generator[int64] {
	w := window.Milliseconds()
	return rapid.OneOf(rapid.SampledFrom([]int64{0, 0, 1, w / int64(limit), w - 1, w, w + 1}), rapid.Int64Range(0, w/int64(limit)))
}

// Steady load at exactly the limit, for three windows, is never refused: evenly spread, or all of a
// window's requests at once.
func TestSteadyLoadAtTheLimit(t *testing.T) {
	forEachSubject(t, func(t *testing.T, newSubject func() subject) {
		for _, b := range []luascripts.Budget{
			luascripts.NewBudget(1, time.Second), luascripts.NewBudget(7, 3*time.Second), luascripts.NewBudget(5, minute),
			luascripts.NewBudget(60, minute), luascripts.NewBudget(100, day),
		} {
			w, limit := b.Window().Milliseconds(), int64(b.Limit())
			for name, at := range map[string]func(i int64) int64{
				"spread":   func(i int64) int64 { return (i*w + limit - 1) / limit },
				"in burst": func(i int64) int64 { return i / limit * w },
			} {
				s := newSubject()
				for i := range 3 * limit {
					s.clock.set(at(i))
					r := s.call(t, b.Limit(), b.Window())
					require.True(t, r.Allowed, "%s, limit %d in %v: call %d at %d ms: %+v", name, limit, b.Window(), i, at(i), r)
				}
			}
		}
	})
}

// One call a second, more than the limit: the first ones of each window are admitted, for ever,
// although each call renews the TTL, and a refused one leaves no trace.
func TestOneCallASecond(t *testing.T) {
	forEachSubject(t, func(t *testing.T, newSubject func() subject) {
		for _, tt := range []struct{ limit, window, seconds, wantAdmitted int }{{2, 4, 20, 10}, {10, 60, 180, 30}} {
			s, admitted := newSubject(), 0
			for at := range tt.seconds {
				s.clock.set(int64(at) * 1000)
				before := s.look(s.key).log
				r := s.call(t, tt.limit, time.Duration(tt.window)*time.Second)
				require.Equal(t, at%tt.window < tt.limit, r.Allowed, "at %d s, limit %d in %d s", at, tt.limit, tt.window)
				if r.Allowed {
					admitted++
				} else {
					require.Equal(t, before, s.look(s.key).log, "at %d s", at)
				}
			}
			require.Equal(t, tt.wantAdmitted, admitted)
		}
	})
}

// No number is too strange for a limit: 0 or less rejects for a window, whatever the window holds,
// and nothing overflows.
func TestAnyLimit(t *testing.T) {
	c := newClock()
	for name, l := range map[string]*Limiter{
		"redis":  NewLimiter(redistest.Client(t), WithClock(c.now)),
		"memory": NewMemoryLimiter(WithClock(c.now)),
	} {
		id := redistest.ID(t)
		for used := range 3 {
			for _, limit := range []int{math.MinInt, math.MinInt + 1, -1 << 62, -1 << 53, -1, 0, 1, 2, 1 << 53, math.MaxInt} {
				d, err := l.Peek(t.Context(), id, limit, minute)
				step := fmt.Sprintf("%s: peek at a limit of %d, %d used", name, limit, used)
				require.NoError(t, err, step)
				want := Decision{Allowed: used < limit, Limit: limit, Window: minute}
				if want.Allowed {
					want.Remaining = limit - used
				} else {
					want.RetryAfter = minute
				}
				require.Equal(t, want, d, step)
				if !want.Allowed {
					d, err = l.Check(t.Context(), id, limit, minute)
					require.NoError(t, err, "%s, then a check", step)
					require.Equal(t, want, d, "%s, then a check", step)
				}
			}
			_, err := l.Check(t.Context(), id, 3, minute)
			require.NoError(t, err)
		}
	}
}
