package luascripts_test

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gin-tiers/ratelimit/luascripts"
)

// The scripts as these tests call them: arguments in, replies out.

// serverTime, as the now of a call, makes a script read the server's clock.
const serverTime = ""

type budget struct {
	limit  int
	window time.Duration
}

func newBudget(limit int, window time.Duration) budget { return budget{max(0, limit), window} }

// reply is a script's word on one window.
type reply struct {
	Allowed    bool
	Count      int
	RetryAfter time.Duration
}

func callAdmit(
	ctx context.Context, rdb redis.Scripter, now, member string, keys []string, budgets []budget,
) ([]reply, error) {
	args := []any{now}
	for i, b := range budgets {
		args = append(args, b.window.Milliseconds(), b.limit)
		if i == 0 {
			args = append(args, member)
		}
		args = append(args, int64(b.window/time.Second)+1)
	}
	return replies(luascripts.SlidingWindow.Run(ctx, rdb, keys, args...))
}

func callPeek(
	ctx context.Context, rdb redis.Scripter, now string, keys []string, budgets []budget,
) ([]reply, error) {
	args := []any{now}
	for _, b := range budgets {
		args = append(args, "log", b.window.Milliseconds(), b.limit)
	}
	return replies(luascripts.PeekScript.Run(ctx, rdb, keys, args...))
}

func callGiveBack(
	ctx context.Context, rdb redis.Scripter, now, member string, keys []string, budgets []budget,
) error {
	args := []any{now, member, 0}
	for _, b := range budgets {
		args = append(args, "log", b.window.Milliseconds(), 1, 0, int64(b.window/time.Second)+1)
	}
	return luascripts.FinishScript.Run(ctx, rdb, keys, args...).Err()
}

func callReset(ctx context.Context, rdb redis.Scripter, keys []string) error {
	return luascripts.ResetScript.Run(ctx, rdb, keys).Err()
}

func replies(cmd *redis.Cmd) (all []reply, err error) {
	values, err := cmd.Int64Slice()
	for ; len(values) >= 3; values = values[3:] {
		all = append(all, reply{values[0] == 1, int(values[1]), time.Duration(values[2]) * time.Millisecond})
	}
	return all, err
}
