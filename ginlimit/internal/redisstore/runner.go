package redisstore

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// runner runs scripts on Redis. Deadline, groups and breakers decorate it.
type runner interface {
	// run returns the script's reply as go-redis decodes it. There is at least one key. The error is from Redis,
	// the connection, ctx, or a decorator.
	run(ctx context.Context, script *redis.Script, keys []string, args []any) (any, error)
}

// client is the runner that calls Redis.
type client struct{ rdb redis.Scripter }

func (c client) run(ctx context.Context, script *redis.Script, keys []string, args []any) (any, error) {
	return script.Run(ctx, c.rdb, keys, args...).Result()
}

// OneServer reports whether a client is known to send all keys to one server: a *redis.Client, or a client
// with its options.
func OneServer(rdb redis.Scripter) bool {
	_, ok := rdb.(interface{ Options() *redis.Options })
	return ok
}

// nodesOf returns a function that returns the address of a key's node, for a client of several nodes. For any
// other client it returns nil.
func nodesOf(rdb redis.Scripter) func(ctx context.Context, key string) (node string, err error) {
	switch c := rdb.(type) {
	case interface {
		MasterForKey(context.Context, string) (*redis.Client, error)
	}:
		return func(ctx context.Context, key string) (string, error) { return address(c.MasterForKey(ctx, key)) }
	case interface {
		GetShardClientForKey(string) (*redis.Client, error)
	}:
		return func(_ context.Context, key string) (string, error) { return address(c.GetShardClientForKey(key)) }
	}
	return nil
}

func address(c *redis.Client, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return c.Options().Addr, nil
}
