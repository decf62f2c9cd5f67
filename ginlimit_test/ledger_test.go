package ginlimit_test

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/gin-tiers/ratelimit/luascripts"
)

// ledger stands between a limiter and Redis. It runs each script in a transaction that numbers it
// and reads the server's clock around it, and shows it all to the audit.
type ledger struct {
	redis.Scripter // of which the scripts use Eval and EvalSha
	rdb            *redis.Client
	audit          *audit
}

// sequence is the key that numbers the transactions.
const sequence = "sequence"

// audited is one script call that Redis has run.
type audited struct {
	number      int64
	sha         string
	keys        []string
	args        []any
	from, until int64 // the server's clock before and after, Unix milliseconds
	reply       any   // nil: the server did not know the script
	scores      []int64
}

func (l *ledger) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	return l.run(ctx, sha, keys, args, func(pipe redis.Pipeliner) *redis.Cmd {
		return pipe.EvalSha(ctx, sha, keys, args...)
	})
}

func (l *ledger) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	return l.run(ctx, redis.NewScript(script).Hash(), keys, args,
		func(pipe redis.Pipeliner) *redis.Cmd { return pipe.Eval(ctx, script, keys, args...) })
}

func (l *ledger) run(ctx context.Context, sha string, keys []string, args []any,
	script func(redis.Pipeliner) *redis.Cmd) *redis.Cmd {
	pipe := l.rdb.TxPipeline()
	number, from := pipe.Incr(ctx, sequence), pipe.Time(ctx)
	cmd := script(pipe)
	until := pipe.Time(ctx)
	var scores []*redis.FloatCmd
	if sha == luascripts.SlidingWindow.Hash() {
		for _, key := range keys {
			scores = append(scores, pipe.ZScore(ctx, key, args[3].(string)))
		}
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	if number.Err() != nil || until.Err() != nil || cmd.Err() != nil &&
		!redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
		l.audit.t.Errorf("a call that cannot be audited: %v, %v, %v", number.Err(), until.Err(), cmd.Err())
		return cmd
	}
	c := audited{number: number.Val(), sha: sha, keys: keys, args: args, from: from.Val().UnixMilli(),
		until: until.Val().UnixMilli()}
	c.reply, _ = cmd.Result()
	for _, score := range scores {
		c.scores = append(c.scores, int64(score.Val())) // 0: not there
	}
	l.audit.add(c)
	return cmd
}
