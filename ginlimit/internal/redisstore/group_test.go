package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/storetest"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/luascripts"
)

// gate is a runner that a test can close. A script waits in front of it, on its way as groups see it.
type gate struct {
	next    runner
	mu      sync.Mutex
	open    chan struct{}
	passing atomic.Int64 // in front of it
	scripts []string     // that passed, by hash
}

func (g *gate) run(ctx context.Context, script *redis.Script, keys []string, args []any) (any, error) {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	g.passing.Add(1)
	<-open
	g.passing.Add(-1)
	g.mu.Lock()
	g.scripts = append(g.scripts, script.Hash())
	g.mu.Unlock()
	return g.next.run(ctx, script, keys, args)
}

// grouped is a store whose groups a test fills: while its gate is closed, no script is back.
type grouped struct {
	*Store
	groups *groups
	gate   *gate
}

func newGrouped(rdb redis.Scripter, clock func() time.Time) *grouped {
	gate := &gate{next: client{rdb}, open: make(chan struct{})}
	close(gate.open)
	g := newGroups(gate)
	g.late = time.Hour
	return &grouped{&Store{scripts: newBreakers(g, nil), clock: clock}, g, gate}
}

// together makes all calls while enough scripts are on their way, so that they wait for each other.
// Then they go. Between are steps of the test before that.
func (g *grouped) together(t testing.TB, claim budget.Claim, calls []func(), between ...func()) {
	t.Helper()
	g.gate.mu.Lock()
	g.gate.open = make(chan struct{})
	open := g.gate.open
	g.gate.mu.Unlock()
	var wg sync.WaitGroup
	for range maxFlights {
		ahead := claim
		ahead.Key = "ahead:" + uuid.NewString()
		wg.Go(func() { _, _, _ = g.Admit(context.Background(), uuid.NewString(), []budget.Claim{ahead}) })
	}
	await(t, func() bool { return g.gate.passing.Load() == maxFlights })
	for i, call := range calls {
		wg.Go(call)
		await(t, func() bool {
			g.groups.mu.Lock()
			defer g.groups.mu.Unlock()
			return g.groups.waiting.keys > i
		})
	}
	for _, step := range between {
		step()
	}
	close(open)
	wg.Wait()
}

func await(t testing.TB, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); time.Sleep(10 * time.Microsecond) {
		require.True(t, time.Now().Before(deadline), "it does not come")
	}
}

func (g *grouped) groupsSent() (n int) {
	for _, hash := range g.gate.scripts {
		if hash == luascripts.GroupScript.Hash() {
			n++
		}
	}
	return n
}

func minuteOf(key string, limit int) budget.Claim {
	minute := budget.Dimension{Window: budget.Minute}
	return budget.Claim{Key: key, Budget: budget.Budget{Dimension: minute, Limit: limit}}
}

// tally counts how the calls of a test ended.
type tally struct{ admitted, rejected, failed atomic.Int64 }

func (c *tally) admit(ctx context.Context, s budget.Store, id string, claims ...budget.Claim) error {
	verdicts, _, err := s.Admit(ctx, id, claims)
	switch {
	case err != nil:
		c.failed.Add(1)
	case verdicts[len(verdicts)-1].Allowed:
		c.admitted.Add(1)
	default:
		c.rejected.Add(1)
	}
	return err
}

func TestGroupsAreExact(t *testing.T) {
	rdb := redistest.Client(t)
	for name, users := range map[string]int{"one user": 1, "500 users": 500} {
		t.Run(name, func(t *testing.T) {
			s := New(rdb, nil, true)
			prefix := uuid.NewString()
			var c tally
			var wg sync.WaitGroup
			for i := range 500 {
				wg.Go(func() {
					key := fmt.Sprintf("%s:%d", prefix, i%users)
					for range 4 {
						_ = c.admit(t.Context(), s, uuid.NewString(), minuteOf(key+":60", 3), minuteOf(key+":61", 1000))
					}
				})
			}
			wg.Wait()
			require.EqualValues(t, 3*users, c.admitted.Load())
			require.EqualValues(t, 2000-3*users, c.rejected.Load())
			for i := range users {
				for _, window := range []string{":60", ":61"} {
					require.EqualValues(t, 3, rdb.ZCard(t.Context(), fmt.Sprintf("%s:%d%s", prefix, i, window)).Val())
				}
			}
		})
	}
}

// What waits while scripts are on their way goes together, and each gets its own reply.
func TestGroupsShareOneScript(t *testing.T) {
	rdb := redistest.Client(t)
	g := newGrouped(rdb, nil)
	key := uuid.NewString()
	replies := make([][]budget.Verdict, maxGroupKeys)
	calls := make([]func(), len(replies))
	for i := range calls {
		calls[i] = func() {
			claim := minuteOf(fmt.Sprint(key, i/2), 1) // two calls a user, of which one is admitted
			replies[i], _, _ = g.Admit(t.Context(), uuid.NewString(), []budget.Claim{claim})
		}
	}
	g.together(t, minuteOf("", 1), calls)
	require.Equal(t, 1, g.groupsSent())
	require.Len(t, g.gate.scripts, maxFlights+1)
	for i := 0; i < len(replies); i += 2 {
		one, other := replies[i][0], replies[i+1][0]
		require.NotEqual(t, one.Allowed, other.Allowed)
		require.Equal(t, []int{1, 1}, []int{one.Used, other.Used})
		require.Positive(t, one.RetryAfter+other.RetryAfter)
	}
}

// A broken key among others: each of the others is admitted and counted once.
func TestAPoisonedKeyFailsAlone(t *testing.T) {
	rdb := redistest.Client(t)
	g := newGrouped(rdb, nil)
	prefix := uuid.NewString()
	require.NoError(t, rdb.Set(t.Context(), prefix+"30", "no sorted set", time.Minute).Err())
	var c tally
	errs := make([]error, 64)
	calls := make([]func(), len(errs))
	for i := range calls {
		calls[i] = func() {
			errs[i] = c.admit(t.Context(), g, uuid.NewString(), minuteOf(fmt.Sprint(prefix, i), 5))
		}
	}
	g.together(t, minuteOf("", 1), calls)
	require.Positive(t, g.groupsSent())
	for i, err := range errs {
		if i == 30 {
			require.ErrorContains(t, err, "WRONGTYPE")
			continue
		}
		require.NoError(t, err)
		require.EqualValues(t, 1, rdb.ZCard(t.Context(), fmt.Sprint(prefix, i)).Val())
	}
	require.EqualValues(t, 63, c.admitted.Load())
}

// The reply of a group gets lost, once and twice: go-redis sends the script again, and each member counts
// once.
func TestALostReplyOfAGroupCountsOnce(t *testing.T) {
	for _, lost := range []int{1, 2} {
		srv := redistest.Start(t)
		proxy := redistest.NewProxy(t, srv.Addr)
		rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr, MinRetryBackoff: -1, MaxRetryBackoff: -1})
		t.Cleanup(func() { _ = rdb.Close() })
		g := newGrouped(rdb, nil)
		_, _, err := g.Admit(t.Context(), uuid.NewString(), []budget.Claim{minuteOf("warm", 5)})
		require.NoError(t, err)
		require.NoError(t, luascripts.GroupScript.Load(t.Context(), rdb).Err())
		var c tally
		calls := make([]func(), maxGroupKeys)
		for i := range calls {
			calls[i] = func() {
				require.NoError(t, c.admit(t.Context(), g, uuid.NewString(), minuteOf(fmt.Sprint("k", i), 5)))
			}
		}
		g.together(t, minuteOf("", 1), calls, func() { proxy.DropReplies(lost) })
		require.EqualValues(t, lost, proxy.Dropped())
		require.EqualValues(t, maxGroupKeys, c.admitted.Load())
		for i := range calls {
			require.EqualValues(t, 1, srv.Client(t).ZCard(t.Context(), fmt.Sprint("k", i)).Val())
		}
	}
}

// A caller that leaves before its decision was sent is not charged. One that leaves later learns what was
// counted.
func TestLeavingAGroup(t *testing.T) {
	rdb := redistest.Client(t)
	for name, leave := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"by itself": context.WithCancel,
		"at its deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second/20)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGrouped(rdb, nil)
			gone, stays := uuid.NewString(), uuid.NewString()
			ctx, cancel := leave(t.Context())
			defer cancel()
			left := make(chan error, 1)
			var c tally
			g.together(t, minuteOf("", 1), []func(){
				func() { left <- c.admit(ctx, g, uuid.NewString(), minuteOf(gone, 5)) },
				func() { require.NoError(t, c.admit(t.Context(), g, uuid.NewString(), minuteOf(stays, 5))) },
			}, func() {
				if name == "by itself" {
					cancel()
				}
				require.ErrorIs(t, <-left, ctx.Err())
				require.Error(t, ctx.Err())
			})
			require.EqualValues(t, 1, c.admitted.Load())
			require.EqualValues(t, 0, rdb.Exists(t.Context(), gone).Val())
			require.EqualValues(t, 1, rdb.ZCard(t.Context(), stays).Val())
		})
	}
	t.Run("after it was sent", func(t *testing.T) {
		inner := newGrouped(rdb, nil)
		ctx, cancel := context.WithCancel(t.Context())
		inner.gate.next = leaving{inner.gate.next, cancel}
		key := uuid.NewString()
		var c tally
		inner.together(t, minuteOf("", 1), []func(){
			func() { require.NoError(t, c.admit(ctx, inner, uuid.NewString(), minuteOf(key, 5))) },
			func() { require.NoError(t, c.admit(t.Context(), inner, uuid.NewString(), minuteOf(key, 5))) },
		})
		require.Error(t, ctx.Err())
		require.EqualValues(t, 2, c.admitted.Load())
		require.EqualValues(t, 2, rdb.ZCard(t.Context(), key).Val())
	})
}

// leaving lets a caller leave as soon as a group is on its way.
type leaving struct {
	next  runner
	leave func()
}

func (l leaving) run(ctx context.Context, script *redis.Script, keys []string, args []any) (any, error) {
	if script == luascripts.GroupScript {
		l.leave()
	}
	return l.next.run(ctx, script, keys, args)
}

// In a black hole everybody leaves at its own deadline, whoever else is in the group.
func TestGroupsInABlackHole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroups(runnerFunc(func(ctx context.Context, _ *redis.Script, _ []string, _ []any) (any, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}))
		s := &Store{scripts: g}
		for i := range 100 {
			go func() {
				patience := time.Duration(1+i%4) * 25 * time.Millisecond
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				began := time.Now()
				_, _, err := s.Admit(ctx, uuid.NewString(), []budget.Claim{minuteOf("k", 5)})
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, patience, time.Since(began))
			}()
		}
		time.Sleep(101 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, [maxFlights]flight{}, g.flights)
		require.Zero(t, g.waiting.keys)
	})
}

type runnerFunc func(context.Context, *redis.Script, []string, []any) (any, error)

func (f runnerFunc) run(ctx context.Context, s *redis.Script, keys []string, args []any) (any, error) {
	return f(ctx, s, keys, args)
}

// One lost connection is one failure, however many decisions it carried.
func TestAGroupsErrorCountsOnce(t *testing.T) {
	broken := errors.New("connection reset")
	g := newGrouped(nil, nil)
	g.gate.next = runnerFunc(func(context.Context, *redis.Script, []string, []any) (any, error) {
		return nil, broken
	})
	g.groups.next = g.gate
	var c tally
	calls := make([]func(), maxGroupKeys)
	for i := range calls {
		calls[i] = func() {
			require.ErrorIs(t, c.admit(t.Context(), g, uuid.NewString(), minuteOf("k", 5)), broken)
		}
	}
	all := g.scripts.(*breakers).all
	all.counting.Store(true)
	g.together(t, minuteOf("", 1), calls)
	require.LessOrEqual(t, all.states.Counts().ConsecutiveFailures, uint32(maxFlights+1))
	require.NotEqual(t, "closed", all.states.State().String(), "the scripts ahead failed too")
}

// Where a Cluster hides behind one address, groups are given up with one warning, and nobody fails.
func TestCrossSlotEndsGroups(t *testing.T) {
	node := redistest.Start(t, "--cluster-enabled", "yes")
	rdb := redis.NewClient(&redis.Options{Addr: node.Addr})
	t.Cleanup(func() { _ = rdb.Close() })
	require.NoError(t, rdb.Do(t.Context(), "cluster", "addslotsrange", 0, 16383).Err())
	await(t, func() bool { return strings.Contains(rdb.ClusterInfo(t.Context()).Val(), "cluster_state:ok") })
	var log strings.Builder
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(old) })

	g := newGrouped(rdb, nil)
	for range 2 {
		var c tally
		calls := make([]func(), 8)
		for i := range calls {
			calls[i] = func() {
				require.NoError(t, c.admit(t.Context(), g, uuid.NewString(), minuteOf(uuid.NewString(), 5)))
			}
		}
		if g.groups.off.Load() {
			for _, call := range calls {
				call()
			}
		} else {
			g.together(t, minuteOf("", 1), calls)
		}
		require.EqualValues(t, 8, c.admitted.Load())
		require.True(t, g.groups.off.Load())
	}
	require.Equal(t, 1, strings.Count(log.String(), "WithHashTags"))
}

// The server forgets its scripts between groups.
func TestScriptFlushBetweenGroups(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	g := newGrouped(rdb, nil)
	key := uuid.NewString()
	for range 3 {
		var c tally
		calls := make([]func(), 10)
		for i := range calls {
			calls[i] = func() { require.NoError(t, c.admit(t.Context(), g, uuid.NewString(), minuteOf(key, 100))) }
		}
		g.together(t, minuteOf("", 1), calls, func() { require.NoError(t, rdb.ScriptFlush(t.Context()).Err()) })
		require.EqualValues(t, 10, c.admitted.Load())
	}
	require.EqualValues(t, 30, rdb.ZCard(t.Context(), key).Val())
	require.Equal(t, 3, g.groupsSent())
}

// A script that is long on its way does not count as one: its connection may hang, and the others must not
// wait for it.
func TestALateScriptHoldsNobodyUp(t *testing.T) {
	hang := make(chan struct{})
	var calls atomic.Int64
	g := newGroups(runnerFunc(func(context.Context, *redis.Script, []string, []any) (any, error) {
		if calls.Add(1) <= maxFlights {
			<-hang
		}
		return []any{int64(1), int64(1), int64(0)}, nil
	}))
	g.late = 0
	s := &Store{scripts: g}
	var wg sync.WaitGroup
	admit := func() {
		_, _, err := s.Admit(t.Context(), uuid.NewString(), []budget.Claim{minuteOf("k", 5)})
		require.NoError(t, err)
	}
	for range maxFlights {
		wg.Go(admit)
	}
	await(t, func() bool { return calls.Load() == maxFlights })
	for range 100 {
		admit()
	}
	close(hang)
	wg.Wait()
}

// A panic of a client is that of each caller, not of the process.
func TestAPanicInAGroupIsTheCallers(t *testing.T) {
	g := newGrouped(nil, nil)
	g.gate.next = runnerFunc(func(context.Context, *redis.Script, []string, []any) (any, error) {
		panic("broken")
	})
	var panics atomic.Int64
	call := func() {
		defer func() {
			if recover() == "broken" {
				panics.Add(1)
			}
		}()
		_, _ = g.groups.run(t.Context(), luascripts.SlidingWindow, []string{"k"}, []any{"", 1, 1, "m", 1})
	}
	g.gate.open = make(chan struct{})
	var wg sync.WaitGroup
	for range maxFlights + 5 {
		wg.Go(call)
	}
	await(t, func() bool {
		g.groups.mu.Lock()
		defer g.groups.mu.Unlock()
		return g.groups.waiting.keys == 5
	})
	close(g.gate.open)
	wg.Wait()
	require.EqualValues(t, maxFlights+5, panics.Load())
}

// Nobody gets ahead by calling often: a group takes from each owner in turn.
func TestTurns(t *testing.T) {
	var q queue
	add := func(user string, keys int) *member {
		m := &member{keys: append([]string{user}, make([]string, keys-1)...), args: []any{""}}
		q.add(m)
		return m
	}
	owners := func(group []*member) (s []string) {
		for _, m := range group {
			s = append(s, m.keys[0])
		}
		return s
	}
	for range 1000 {
		add("many", 1)
	}
	add("few", 1)
	gone := add("gone", 1)
	q.leave(gone)
	add("few", 1)
	group := q.take(nil)
	require.Equal(t, []string{"many", "few", "many", "few", "many"}, owners(group)[:5])
	require.Len(t, group, maxGroupKeys)
	add("late", 1)
	require.Contains(t, owners(q.take(nil)), "late")
	for range 1000/maxGroupKeys + 1 {
		group = q.take(nil)
	}
	require.Empty(t, group)
	require.Equal(t, []any{0, 0, (*lane)(nil)}, []any{q.keys, len(q.lanes), q.first})

	add("a", maxGroupKeys-1)
	add("b", 2)
	add("c", 1)
	require.Equal(t, []string{"a"}, owners(q.take(nil)), "b has no room, and c does not overtake it")
	require.Equal(t, []string{"b", "c"}, owners(q.take(nil)))
}

// The model of one decision after the other, each in a group with others.
func TestModelInGroups(t *testing.T) {
	one := subjects(t)
	storetest.Model(t, func() storetest.Subject {
		s := one()
		s.Store = &inCompany{Store: s.Store.(*Store), t: t}
		return s
	})
}

// inCompany decides each request in a group, between others of other owners.
type inCompany struct {
	*Store
	t *testing.T
}

func (s *inCompany) Admit(
	ctx context.Context, id string, claims []budget.Claim,
) (v []budget.Verdict, at int64, err error) {
	rdb := s.scripts.(*breakers).next.(deadline).next.(client).rdb
	g := newGrouped(rdb, s.clock)
	other := func() { _, _, _ = g.Admit(ctx, uuid.NewString(), []budget.Claim{minuteOf(uuid.NewString(), 5)}) }
	g.together(s.t, minuteOf("", 5), []func(){other, func() { v, _, err = g.Admit(ctx, id, claims) }, other})
	if len(claims) <= maxGroupKeys-2 {
		require.Equal(s.t, 1, g.groupsSent())
	}
	return v, at, err
}
