package luascripts_test

import (
	"context"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/luascripts"
)

// recorder is a Scripter that keeps what it is sent and answers with a fixed reply: for what no
// server would show, the order of the arguments and replies that no script gives.
type recorder struct {
	redis.Scripter
	sha   string
	keys  []string
	args  []any
	reply any
}

func (r *recorder) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	r.sha, r.keys, r.args = sha, keys, args
	return redis.NewCmdResult(r.reply, nil)
}

// The header of each script names the arguments, the Go call sends them, and the body reads them.
func TestHeaderBodyAndCallAgree(t *testing.T) {
	budgets := []luascripts.Budget{luascripts.NewBudget(5, time.Minute), luascripts.NewBudget(100, 24*time.Hour)}
	keys := []string{"k1", "k2"}
	two := []any{int64(1), int64(1), int64(0), int64(1), int64(1), int64(0)}
	for _, tt := range []struct {
		file   string
		script *redis.Script
		header []string // in this order, each once
		reply  any
		call   func(redis.Scripter) error
		want   []any
	}{
		{
			file: "sliding_window.lua", script: luascripts.SlidingWindow,
			header: []string{`KEYS\[i\]`, `ARGV\[1\] +now_ms`, `ARGV\[2\] +window_ms`, `ARGV\[3\] +limit`, `ARGV\[4\] +member`, `ARGV\[5\] +ttl_s`, `ARGV\[6…\] window_ms, limit, ttl_s`},
			reply:  two,
			call: func(r redis.Scripter) error {
				_, err := luascripts.Admit(t.Context(), r, "7", "m", keys, budgets)
				return err
			},
			want: []any{"7", int64(60_000), 5, "m", int64(61), int64(86_400_000), 100, int64(86_401)},
		},
		{
			file: "peek.lua", script: luascripts.PeekScript,
			header: []string{`KEYS\[i\]`, `ARGV\[1\] +now_ms`, `ARGV\[2…\] window_ms \(> 0\), limit`},
			reply:  two,
			call: func(r redis.Scripter) error {
				_, err := luascripts.Peek(t.Context(), r, "7", keys, budgets)
				return err
			},
			want: []any{"7", int64(60_000), 5, int64(86_400_000), 100},
		},
		{
			file: "give_back.lua", script: luascripts.GiveBackScript,
			header: []string{`KEYS\[i\]`, `ARGV\[1\] +now_ms`, `ARGV\[2\] +member`, `ARGV\[3…\] window_ms`},
			reply:  int64(2),
			call:   func(r redis.Scripter) error { return luascripts.GiveBack(t.Context(), r, "7", "m", keys, budgets) },
			want:   []any{"7", "m", int64(60_000), int64(86_400_000)},
		},
		{
			file: "reset.lua", script: luascripts.ResetScript,
			header: []string{`KEYS\[i\]`, `ARGV +none`},
			reply:  int64(2),
			call:   func(r redis.Scripter) error { return luascripts.Reset(t.Context(), r, keys) },
		},
	} {
		source, err := os.ReadFile(tt.file)
		require.NoError(t, err)
		text := string(source)
		require.Regexp(t, `^-- `+regexp.QuoteMeta(tt.file)+`: `, text)
		header := regexp.MustCompile(`(?m)\A(--.*\n)+`).FindString(text)
		for _, pattern := range append(tt.header, `Reply: `, `.*(O\(.*Redis 6\.2 or newer|Redis 6\.2 or newer)`) {
			loc := regexp.MustCompile(`(?m)^-- ` + pattern).FindStringIndex(header)
			require.NotNil(t, loc, "%s: %s is not in the header, or out of order", tt.file, pattern)
			header = header[loc[1]:]
		}
		require.Equal(t, redis.NewScript(text).Hash(), tt.script.Hash(), "%s is what is embedded", tt.file)

		r := &recorder{reply: tt.reply}
		require.NoError(t, tt.call(r))
		require.Equal(t, tt.script.Hash(), r.sha)
		require.Equal(t, keys, r.keys)
		require.Equal(t, tt.want, r.args, tt.file)
	}
}

func TestStrangeRepliesAreErrors(t *testing.T) {
	type a = []any
	one := []luascripts.Budget{luascripts.NewBudget(5, time.Minute)}
	two := append(one, luascripts.NewBudget(100, 24*time.Hour))
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
		{"negative wait", a{int64(0), int64(1), int64(-1)}, "no decision", "no decision"},
		{"rejected without a wait", a{int64(0), int64(1), int64(0)}, "no decision", "no decision"},
		{"allowed with a wait", a{int64(1), int64(1), int64(5)}, "no decision", "no decision"},
		{"a wait beyond time.Duration", a{int64(0), int64(1), int64(1 << 62)}, "no decision", "no decision"},
		{"admitted by one window of two", a{int64(1), int64(1), int64(0)}, "window 1 allowed true", "1 windows where 2"},
		{"rejected by the first of two", a{int64(0), int64(1), int64(5)}, "", "1 windows where 2"},
		{"replies after a rejection", a{int64(0), int64(1), int64(5), int64(1), int64(1), int64(0)}, "window 1 allowed false", ""},
		{"three windows of two", a{int64(1), int64(1), int64(0), int64(1), int64(1), int64(0), int64(1), int64(1), int64(0)}, "where 2 were asked", "3 windows where 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &recorder{reply: tt.reply}
			_, err := luascripts.Admit(t.Context(), r, "7", "m", []string{"a", "b"}, two)
			check(t, tt.decide, err)
			_, err = luascripts.Peek(t.Context(), r, "7", []string{"a", "b"}, two)
			check(t, tt.each, err)
		})
	}
}

func check(t *testing.T, want string, err error) {
	t.Helper()
	if want == "" {
		require.NoError(t, err)
		return
	}
	require.ErrorContains(t, err, want)
}

func TestRedisErrorsStayVisible(t *testing.T) {
	r := &failing{err: redis.ErrClosed}
	budgets := []luascripts.Budget{luascripts.NewBudget(5, time.Minute)}
	_, err := luascripts.Admit(t.Context(), r, "7", "m", []string{"k"}, budgets)
	require.ErrorIs(t, err, redis.ErrClosed)
	_, err = luascripts.Peek(t.Context(), r, "7", []string{"k"}, budgets)
	require.ErrorIs(t, err, redis.ErrClosed)
	require.ErrorIs(t, luascripts.GiveBack(t.Context(), r, "7", "m", []string{"k"}, budgets), redis.ErrClosed)
	require.ErrorIs(t, luascripts.Reset(t.Context(), r, []string{"k"}), redis.ErrClosed)
}

type failing struct {
	redis.Scripter
	err error
}

func (f *failing) EvalSha(context.Context, string, []string, ...any) *redis.Cmd {
	return redis.NewCmdResult(nil, f.err)
}
