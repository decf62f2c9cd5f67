package ginlimit_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/gin-tiers/ratelimit/ginlimit_test/faulttest"
)

// afterScript is a go-redis hook that is called when a script has been answered.
type afterScript func()

func (f afterScript) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f afterScript) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (f afterScript) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil && (cmd.Name() == "evalsha" || cmd.Name() == "eval") {
			f()
		}
		return err
	}
}

func median(spans []faulttest.Span) time.Duration {
	lengths := make([]time.Duration, len(spans))
	for i, s := range spans {
		lengths[i] = s.Length()
	}
	slices.Sort(lengths)
	return lengths[len(lengths)/2]
}

// stopwatch measures decisions: from before the limiter to the handler, or to its refusal.
type stopwatch struct {
	mu   sync.Mutex
	took []faulttest.Span
}

func (s *stopwatch) measure(c *gin.Context) {
	begin := time.Now()
	c.Next()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took = append(s.took, faulttest.Since(begin))
}

func (s *stopwatch) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took = nil
}

func (s *stopwatch) all() []faulttest.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.took)
}
