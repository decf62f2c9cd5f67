package ginlimit

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gin-tiers/ratelimit/luascripts"
)

// store is the seam below Limiter: where requests are counted. keys[i] is the log of budgets[i],
// shortest window first; there is at least one. Every implementation passes one conformance suite.
type store interface {
	// admit decides one request against all windows, all or none. The replies end with the first
	// window that rejected; a repeat of an admitted member is admitted and counted once.
	admit(ctx context.Context, member string, keys []string, budgets []luascripts.Budget) ([]luascripts.Reply, error)
	// peek tells, for every window, what admit would find, and writes nothing.
	peek(ctx context.Context, keys []string, budgets []luascripts.Budget) ([]luascripts.Reply, error)
	// giveBack takes an admitted member out of all windows, as if it had never come.
	giveBack(ctx context.Context, member string, keys []string, budgets []luascripts.Budget) error
	// reset forgets the keys, all in one step.
	reset(ctx context.Context, keys []string) error
}

// redisStore counts on a Redis server. Every method is one script execution.
type redisStore struct {
	rdb   redis.Scripter
	clock func() time.Time // nil = the server's
}

func (s *redisStore) now() string {
	if s.clock == nil {
		return luascripts.ServerTime
	}
	return strconv.FormatInt(s.clock().UnixMilli(), 10)
}

func (s *redisStore) admit(ctx context.Context, member string, keys []string, budgets []luascripts.Budget) ([]luascripts.Reply, error) {
	return luascripts.Admit(ctx, s.rdb, s.now(), member, keys, budgets)
}

func (s *redisStore) peek(ctx context.Context, keys []string, budgets []luascripts.Budget) ([]luascripts.Reply, error) {
	return luascripts.Peek(ctx, s.rdb, s.now(), keys, budgets)
}

func (s *redisStore) giveBack(ctx context.Context, member string, keys []string, budgets []luascripts.Budget) error {
	return luascripts.GiveBack(ctx, s.rdb, s.now(), member, keys, budgets)
}

func (s *redisStore) reset(ctx context.Context, keys []string) error {
	return luascripts.Reset(ctx, s.rdb, keys)
}
