package redisstore

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/storetest"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/luascripts"
)

func TestConformance(t *testing.T) {
	for name, connect := range map[string]func(*testing.T) redis.Scripter{
		"server": func(t *testing.T) redis.Scripter { return redistest.Client(t) },
		"ring": func(t *testing.T) redis.Scripter {
			shards := map[string]string{"a": redistest.Start(t).Addr, "b": redistest.Start(t).Addr}
			ring := redis.NewRing(&redis.RingOptions{Addrs: shards})
			t.Cleanup(func() { _ = ring.Close() })
			return ring
		},
		"cluster": func(t *testing.T) redis.Scripter { return redistest.StartCluster(t, 3, 0).Client(t) },
		"sentinel": func(t *testing.T) redis.Scripter {
			return redistest.StartSentinel(t).Client(t, &redis.Options{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := storetest.NewClock()
			storetest.Conform(t, New(connect(t), c.Now, false), c)
		})
	}
}

func TestModel(t *testing.T) { storetest.Model(t, subjects(t)) }

func TestArrivals(t *testing.T) { storetest.Arrivals(t, subjects(t)) }

// subjects returns a function that makes stores on one server, each with keys of its own.
func subjects(t *testing.T) func() storetest.Subject {
	rdb := redistest.Start(t).Client(t) // a key without a TTL may stay behind
	for _, script := range []*redis.Script{
		luascripts.SlidingWindow, luascripts.GroupScript, luascripts.PeekScript, luascripts.FinishScript,
		luascripts.ResetScript,
	} {
		require.NoError(t, script.Load(t.Context(), rdb).Err())
	}
	return func() storetest.Subject {
		c := storetest.NewClock()
		still := &stillRedis{rdb: rdb, seen: map[string]storetest.Contents{}, ttl: map[string]time.Duration{}}
		return storetest.Subject{
			Store: New(still, c.Now, false), Clock: c, Key: uuid.NewString(),
			Look: func(key string) storetest.Contents { return still.seen[key] },
			Hold: still.hold,
		}
	}
}

// stillRedis is a Redis on which no TTL runs down between two calls, so that a clock that only the
// test moves and the server's own cannot contradict each other, however slow the machine: each
// script runs in a transaction, within which nothing expires, that first gives the keys the TTL
// they are held at and in the end takes it away again. It reads back what the script left.
type stillRedis struct {
	redis.Scripter // of which a store uses EvalSha alone, for scripts that are loaded
	rdb            *redis.Client

	mu   sync.Mutex // one transaction after the other
	seen map[string]storetest.Contents
	ttl  map[string]time.Duration // of the keys that are held at one; others have none
}

func (r *stillRedis) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	r.mu.Lock()
	defer r.mu.Unlock()
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
		var c storetest.Contents
		for _, z := range logs[i].Val() {
			c.Log = append(c.Log, storetest.Admission{At: int64(z.Score), ID: z.Member.(string)})
		}
		if at := expiries[i].Val(); at > 0 {
			c.TTL = at - time.Duration(ended.Val().UnixMilli())*time.Millisecond
			c.MostTTL = at - time.Duration(began.Val().UnixMilli())*time.Millisecond
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

// recorder is a Scripter that keeps what it is sent and answers with a fixed reply: for the order of the
// arguments, and for replies that no server gives.
type recorder struct {
	redis.Scripter
	sha   string
	keys  []string
	args  []any
	reply any
	err   error
}

func (r *recorder) EvalSha(_ context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	r.sha, r.keys, r.args = sha, keys, args
	return redis.NewCmdResult(r.reply, r.err)
}

func minuteAndDay() []budget.Claim {
	return []budget.Claim{
		{Key: "k1", Budget: requests(5, budget.Minute)},
		{Key: "k2", Budget: requests(100, budget.Day)},
	}
}

func requests(limit int, window time.Duration) budget.Budget {
	return budget.Budget{Dimension: budget.Dimension{Window: window}, Limit: limit}
}

// What is sent is what the scripts' headers say.
func TestArguments(t *testing.T) {
	claims, now := minuteAndDay(), func() time.Time { return time.UnixMilli(7) }
	two := []any{int64(1), int64(1), int64(0), int64(1), int64(1), int64(0)}
	for _, tt := range []struct {
		script *redis.Script
		reply  any
		call   func(*Store) error
		want   []any
	}{
		{luascripts.SlidingWindow, two,
			func(s *Store) error { _, _, err := s.Admit(t.Context(), "m", claims); return err },
			[]any{"7", int64(60_000), 5, "m", int64(61), int64(86_400_000), 100, int64(86_401)}},
		{luascripts.PeekScript, two,
			func(s *Store) error { _, err := s.Peek(t.Context(), claims); return err },
			[]any{"7", "log", int64(60_000), 5, "log", int64(86_400_000), 100}},
		{luascripts.FinishScript, int64(2),
			func(s *Store) error { return s.Finish(t.Context(), budget.Admission{ID: "m", Claims: claims}, nil) },
			[]any{"7", "m", int64(0), "log", int64(60_000), 1, 0, int64(61),
				"log", int64(86_400_000), 1, 0, int64(86_401)}},
		{luascripts.ResetScript, int64(2),
			func(s *Store) error { return s.Reset(t.Context(), []string{"k1", "k2"}) }, nil},
	} {
		r := &recorder{reply: tt.reply}
		require.NoError(t, tt.call(New(r, now, false)))
		require.Equal(t, tt.script.Hash(), r.sha)
		require.Equal(t, []string{"k1", "k2"}, r.keys)
		require.Equal(t, tt.want, r.args)

		require.ErrorIs(
			t,
			tt.call(New(&recorder{err: redis.ErrClosed}, now, false)),
			redis.ErrClosed,
			"a caller can match it",
		)
	}
	r := &recorder{reply: two}
	_, _, err := New(r, nil, false).Admit(t.Context(), "m", claims)
	require.NoError(t, err)
	require.Equal(t, "", r.args[0], "the server's clock")
}

func TestStrangeRepliesAreErrors(t *testing.T) {
	type a = []any
	for _, tt := range []struct {
		name   string
		reply  any
		decide string // error of Admit over two windows
		each   string // error of Peek over two windows
	}{
		{"nil", nil, "three integers a window", "three integers a window"},
		{"text", "OK", "three integers a window", "three integers a window"},
		{"empty", a{}, "three integers a window", "three integers a window"},
		{"two values", a{int64(1), int64(1)}, "three integers a window", "three integers a window"},
		{"text inside", a{int64(1), "1", int64(0)}, "string", "string"},
		{"allowed 2", a{int64(2), int64(1), int64(0)}, "no decision", "no decision"},
		{"negative count", a{int64(1), int64(-1), int64(0)}, "no decision", "no decision"},
		{"negative wait", a{int64(0), int64(1), int64(-2)}, "no decision", "no decision"},
		{"rejected without a wait", a{int64(0), int64(1), int64(0)}, "no decision", "no decision"},
		{"allowed with a wait", a{int64(1), int64(1), int64(5)}, "no decision", "no decision"},
		{"a wait beyond time.Duration", a{int64(0), int64(1), int64(1 << 62)}, "no decision", "no decision"},
		{"admitted by one window of two", a{int64(1), int64(1), int64(0)},
			"window 1 allowed true", "1 windows where 2"},
		{"rejected by the first of two", a{int64(0), int64(1), int64(5)}, "", "1 windows where 2"},
		{"replies after a rejection",
			a{int64(0), int64(1), int64(5), int64(1), int64(1), int64(0)}, "window 1 allowed false", ""},
		{"three windows of two",
			a{int64(1), int64(1), int64(0), int64(1), int64(1), int64(0), int64(1), int64(1), int64(0)},
			"where 2 were asked", "3 windows where 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := New(&recorder{reply: tt.reply}, nil, false)
			_, _, err := s.Admit(t.Context(), "m", minuteAndDay())
			wantError(t, tt.decide, err)
			_, err = s.Peek(t.Context(), minuteAndDay())
			wantError(t, tt.each, err)
		})
	}
}

func wantError(t *testing.T, want string, err error) {
	t.Helper()
	if want == "" {
		require.NoError(t, err)
		return
	}
	require.ErrorContains(t, err, want)
}

func TestUsage(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	storetest.Usage(t, func() storetest.Subject {
		c := storetest.NewClock()
		return storetest.Subject{Store: New(rdb, c.Now, false), Clock: c, Key: uuid.NewString()}
	})
}
