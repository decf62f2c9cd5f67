package main

import (
	"context"
	_ "embed"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

//go:embed testdata/noop.lua
var noopSource string

//go:embed testdata/commands.lua
var commandsSource string

// The baselines decide nothing. They show what a call costs without a limiter.
var (
	ping = baseline("PING", "ping", func(ctx context.Context, rdb redis.UniversalClient, _ string) error {
		return rdb.Ping(ctx).Err()
	}, plain, pipelined, deadlines)

	noop = redis.NewScript(noopSource)

	// noopScript is called with what ginlimit sends for one window.
	noopScript = baseline("a script that does nothing", "evalsha",
		func(ctx context.Context, rdb redis.UniversalClient, user string) error {
			return noop.Run(ctx, rdb, []string{"ratelimit:" + user + ":60"}, "", 60_000, 600, uuidLong, 61).Err()
		})

	commands = redis.NewScript(commandsSource)

	// commandsAlone runs the five commands of an admission: the most that a faster script could gain.
	commandsAlone = baseline("the commands of one window alone", "evalsha",
		func(ctx context.Context, rdb redis.UniversalClient, user string) error {
			now, key := time.Now().UnixMilli(), "ratelimit:"+user+":60"
			return commands.Run(ctx, rdb, []string{key}, now-60_000, now, uuid.NewString()).Err()
		})

	noLimiter = limiter{
		name:    "no limiter",
		clients: []client{plain},
		mount:   func(redis.UniversalClient, []window) []gin.HandlerFunc { return nil },
	}
)

const uuidLong = "00000000-0000-4000-8000-000000000000"

func baseline(
	name, command string, call func(context.Context, redis.UniversalClient, string) error, clients ...client,
) limiter {
	return limiter{
		name:     name,
		clients:  clients,
		commands: map[string]float64{command: 1},
		one: func(rdb redis.UniversalClient, _ window) decide {
			return func(ctx context.Context, user string) (verdict, error) {
				return verdict{allowed: true}, call(ctx, rdb, user)
			}
		},
	}
}
