package main

import (
	"context"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// The baselines decide nothing: what is left of a decision when the limiter costs nothing.
var (
	ping = limiter{
		name:   "PING",
		server: map[string]float64{"ping": 1},
		open: func(rdb redis.UniversalClient, _ []window) (decide, error) {
			return func(ctx context.Context, _ string) (bool, error) {
				return true, rdb.Ping(ctx).Err()
			}, nil
		},
	}

	// noopScript is called with what ginlimit sends for one window.
	noopScript = limiter{
		name:   "a script that does nothing",
		server: map[string]float64{"evalsha": 1},
		open: func(rdb redis.UniversalClient, _ []window) (decide, error) {
			script, member := redis.NewScript(noopSource), requestID()
			return func(ctx context.Context, user string) (bool, error) {
				return true, script.Run(ctx, rdb, []string{"ratelimit:" + user + ":60"}, "", 60_000, 600, member, 61).Err()
			}, nil
		},
	}

	// commandsAlone runs the five commands of an admission: the most that a faster script could gain.
	commandsAlone = limiter{
		name:   "the commands of one window alone",
		server: map[string]float64{"evalsha": 1},
		open: func(rdb redis.UniversalClient, _ []window) (decide, error) {
			script := redis.NewScript(commandsSource)
			return func(ctx context.Context, user string) (bool, error) {
				now := time.Now().UnixMilli()
				return true, script.Run(ctx, rdb, []string{"ratelimit:" + user + ":60"}, now-60_000, now, uuid.NewString()).Err()
			}, nil
		},
	}

	noLimiter = limiter{
		name:       "no limiter",
		middleware: func(redis.UniversalClient, []window) ([]gin.HandlerFunc, error) { return nil, nil },
	}
)
