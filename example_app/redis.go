package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/redisclient"
)

// rejectionKeys is how many keys' rejections are remembered, for at most a second. It takes about 3 MB.
const rejectionKeys = 10_000

// newLimiter counts in Redis, or in memory when there are no URLs. Redis need not be up yet: until
// it is, limited requests are answered with 503.
func newLimiter(ctx context.Context, redisURLs []string) (
	limiter *ginlimit.Limiter, closeLimiter func() error, err error,
) {
	if len(redisURLs) == 0 {
		return ginlimit.NewMemoryLimiter(), func() error { return nil }, nil
	}
	rdb, err := redisclient.New(redisURLs...)
	if err != nil {
		return nil, nil, fmt.Errorf("REDIS_URL: %w", err)
	}
	go warnAbout(ctx, rdb)
	return ginlimit.NewLimiter(rdb, ginlimit.WithRejectionCache(rejectionKeys)), rdb.Close, nil
}

// warnAbout logs what is wrong with Redis, without holding up the start.
func warnAbout(ctx context.Context, rdb redis.UniversalClient) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := redisclient.SelfCheck(ctx, rdb); err != nil {
		slog.Warn("Redis is not as the limiter needs it", "error", err)
	}
}

// splitURLs splits a list at its commas, but not at those within a password: what has an @ and no scheme is
// the end of the URL before it.
func splitURLs(list string) []string {
	var urls []string
	rest := ""
	parts := strings.Split(list, ",")
	for i := len(parts) - 1; i >= 0; i-- {
		if rest = parts[i] + rest; i > 0 && strings.Contains(rest, "@") && !strings.Contains(rest, "://") {
			rest = "," + rest
			continue
		}
		urls = append([]string{rest}, urls...)
		rest = ""
	}
	return urls
}

// redisLog is where go-redis logs to: into the log of this app, one line a second at most. What it has to say
// it says again as long as there is reason to.
type redisLog struct{ rate logRate }

func (l *redisLog) Printf(ctx context.Context, format string, args ...any) {
	if l.rate.allow() {
		slog.WarnContext(ctx, "go-redis", "says", clip(strings.ToValidUTF8(fmt.Sprintf(format, args...), "?"), 500))
	}
}
