package luascripts_test

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/luascripts"
)

// form is a budget of admit.lua: its key, form, window, limit and cost.
type form struct {
	key    string
	form   string
	window time.Duration
	limit  int
	cost   int
}

var (
	minuteLog   = form{":60", "log", time.Minute, 1 << 40, 1}
	dayLog      = form{":86400", "log", 24 * time.Hour, 1 << 40, 1}
	daySum      = form{":86400:requests", "sum", 24 * time.Hour, 1 << 40, 1}
	minuteToken = form{":60:tokens", "sum", time.Minute, 1 << 50, 900}
	dayToken    = form{":86400:tokens", "sum", 24 * time.Hour, 1 << 50, 900}
	slots       = form{":leases", "lease", 15 * time.Second, 1 << 20, 1}
	noSlots     = form{":leases", "lease", 15 * time.Second, -1, 1}
)

func admitArgs(user, now, id string, forms ...form) (keys []string, args []any) {
	args = append(args, now, id)
	for _, f := range forms {
		keys = append(keys, user+f.key)
		args = append(args, f.form, f.window.Milliseconds(), f.limit, f.cost, int64(f.window/time.Second)+1)
	}
	return keys, args
}

func finishArgs(user, now, id string, at int64, used int, forms ...form) (keys []string, args []any) {
	args = append(args, now, id, at)
	for _, f := range forms {
		keys = append(keys, user+f.key)
		stays := 1
		if f.cost != 1 {
			stays = used
		}
		args = append(args, f.form, f.window.Milliseconds(), f.cost, stays, int64(f.window/time.Second)+1)
	}
	return keys, args
}

// BenchmarkServerTime reports the time of the server, by commandstats, that a decision takes: budgets in one
// script, the same asked one by one, the end of a request, and a check of a single window to compare with.
// The calls spread over users whose sums have 60 records.
//
//	go test -run '^$' -bench ServerTime -benchtime 20000x ./luascripts
func BenchmarkServerTime(b *testing.B) {
	all := []form{minuteLog, dayLog, minuteToken, dayToken, slots}
	type call func(rdb *redis.Client, user, id string, n int) error
	admit := func(forms ...form) call {
		return func(rdb *redis.Client, user, id string, _ int) error {
			keys, args := admitArgs(user, serverTime, id, forms...)
			return luascripts.AdmitScript.Run(context.Background(), rdb, keys, args...).Err()
		}
	}
	check := func(f form) call {
		return func(rdb *redis.Client, user, id string, _ int) error {
			return luascripts.SlidingWindow.Run(context.Background(), rdb, []string{user + f.key}, serverTime,
				f.window.Milliseconds(), f.limit, id, int64(f.window/time.Second)+1).Err()
		}
	}
	sequence := func(calls ...call) call {
		return func(rdb *redis.Client, user, id string, n int) error {
			for _, c := range calls {
				if err := c(rdb, user, id, n); err != nil {
					return err
				}
			}
			return nil
		}
	}
	finish := func(used int, forms ...form) call {
		return func(rdb *redis.Client, user, id string, n int) error {
			keys, args := finishArgs(user, serverTime, id, 0, used, forms...)
			return luascripts.FinishScript.Run(context.Background(), rdb, keys, args...).Err()
		}
	}
	never := form{":60:tokens", "sum", time.Minute, 1000, 900}
	// A window of tokens alone has a lease to know repeats by.
	lease := func(key string, limit int) form { return form{key, "lease", 15 * time.Second, limit, 1} }
	oneByOne := sequence(check(minuteLog), check(dayLog), admit(minuteToken, noSlots),
		admit(dayToken, lease(":leases2", -1)), admit(lease(":leases3", 1<<20)))
	for _, bm := range []struct {
		name   string
		before call // not measured
		call   call
	}{
		{"check", nil, check(minuteLog)},
		{"two_logs", nil, func(rdb *redis.Client, user, id string, _ int) error {
			return luascripts.SlidingWindow.Run(context.Background(), rdb, []string{user + ":60", user + ":86400"},
				serverTime,
				60_000, 1<<40, id, 61, 86_400_000, 1<<40, 86_401).Err()
		}},
		{"all_in_one", nil, admit(all...)},
		{"all_one_by_one", nil, oneByOne},
		{"log_and_three_sums_and_lease", nil, admit(minuteLog, daySum, minuteToken, dayToken, slots)},
		{"two_logs_and_lease", nil, admit(minuteLog, dayLog, slots)},
		{"log_and_lease", nil, admit(minuteLog, slots)},
		{"rejected_by_tokens", nil, admit(minuteLog, dayLog, never, dayToken, slots)},
		{"finish_less", admit(all...), finish(700, all...)},
		{"finish_more", admit(all...), finish(1100, all...)},
		{"finish_equal", admit(all...), finish(900, all...)},
		{"finish_again", nil, finish(700, all...)},
	} {
		b.Run(bm.name, func(b *testing.B) {
			srv := redistest.Start(b)
			rdb := srv.Client(b)
			const users = 50
			fillSums(b, rdb, users, minuteToken, dayToken, daySum)
			user := func(i int) string { return "u" + strconv.Itoa(i%users) }
			if bm.before != nil {
				for i := range b.N {
					require.NoError(b, bm.before(rdb, user(i), "r"+strconv.Itoa(i), i))
				}
			}
			for range 3 { // loads the scripts
				require.NoError(b, bm.call(rdb, "warm-up", "w", 0))
			}
			srv.ResetStats(b)
			b.ResetTimer()
			for i := range b.N {
				if err := bm.call(rdb, user(i), "r"+strconv.Itoa(i), i); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			b.ReportMetric(scriptMicros(b, rdb)/float64(b.N), "server-µs/op")
		})
	}
}

// fillSums gives users 60 records in each window: one for each slice that has gone.
func fillSums(tb testing.TB, rdb *redis.Client, users int, forms ...form) {
	tb.Helper()
	now := time.Now().UnixMilli()
	pipe := rdb.Pipeline()
	require.NoError(tb, luascripts.AdmitScript.Load(tb.Context(), rdb).Err())
	for _, f := range forms {
		slice := f.window.Milliseconds() / 60
		for i := range int64(59) {
			for u := range users {
				at := strconv.FormatInt(now-(59-i)*slice, 10)
				keys, args := admitArgs("u"+strconv.Itoa(u), at, fmt.Sprint("f", f.key, i), f, noSlots)
				luascripts.AdmitScript.EvalSha(tb.Context(), pipe, keys, args...)
			}
		}
	}
	_, err := pipe.Exec(tb.Context())
	require.NoError(tb, err)
}

// scriptMicros is the server's time in scripts since the last reset, in microseconds.
func scriptMicros(tb testing.TB, rdb *redis.Client) float64 {
	tb.Helper()
	for line := range strings.Lines(rdb.Info(tb.Context(), "commandstats").Val()) {
		if rest, ok := strings.CutPrefix(line, "cmdstat_evalsha:"); ok {
			for part := range strings.SplitSeq(rest, ",") {
				if usec, ok := strings.CutPrefix(part, "usec="); ok {
					n, err := strconv.ParseFloat(usec, 64)
					require.NoError(tb, err)
					return n
				}
			}
		}
	}
	tb.Fatal("no scripts in commandstats")
	return 0
}

var admissions = flag.Int64("admissions", 20_000, "how many TestMemoryOfBoundedWindows makes")

// After any number of admissions of one user each bounded window takes at most 1.5 KB.
//
//	go test -run MemoryOfBounded -admissions 1000000 ./luascripts
func TestMemoryOfBoundedWindows(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	forms := []form{daySum, minuteToken, dayToken, minuteLog}
	const atOnce = 2_000
	step := 2 * (24 * time.Hour).Milliseconds() / *admissions // for two days
	// The script itself, many times in one call: most of a call is its way here and back.
	many := redis.NewScript("local function admit(KEYS, ARGV)\n" + read(t, "clock.lua") + read(t, "decide.lua") +
		read(t, "sums.lua") + read(t, "admit.lua") + "\nend\n" + `
		local now, step, reply = ARGV[1] + 0, ARGV[2] + 0, nil
		for i = 1, ARGV[3] do
			ARGV[1] = string.format('%d', now + i * step)
			ARGV[2] = ARGV[1]
			reply = admit(KEYS, {ARGV[1], ARGV[2], unpack(ARGV, 4)})
			if #reply ~= 13 then return redis.error_reply('rejected') end
		end
		return reply`)
	keys, args := admitArgs("alice", "", "", forms...)
	for i := int64(0); i < *admissions; i += atOnce {
		all := append([]any{epoch + i*step, step, atOnce}, args[2:]...)
		require.NoError(t, many.Run(t.Context(), rdb, keys, all...).Err())
	}
	for _, f := range forms[:3] {
		used, err := rdb.MemoryUsage(t.Context(), "alice"+f.key).Result()
		require.NoError(t, err)
		t.Logf("%s: %d bytes", f.key, used)
		require.LessOrEqual(t, used, int64(1536), f.key)
	}
}
