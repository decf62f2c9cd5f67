package redisclient

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Pipeline runs scripts for many callers at once over shared pipelines. It is safe for concurrent
// use. Closing it leaves its client open.
type Pipeline interface {
	redis.Scripter
	Close() error
}

// autoPipelineOptions are what both faces of go-redis's AutoPipeline use on a client of New. Its own
// default gathers all callers into one batch, then waits for all replies: the server idles while
// this process works, and the other way round. Four smaller batches at a time let both work; 16
// calls a batch leave little of the cost of a round trip. No timer is involved, so a lone call is
// sent at once. Decisions need no order: each caller waits for its own.
func autoPipelineOptions() *redis.AutoPipelineOptions {
	return &redis.AutoPipelineOptions{MaxBatchSize: 16, MaxConcurrentBatches: 4, Unordered: true}
}

// AutoPipeline returns a Pipeline on a client of New: calls of concurrent requests share round
// trips, which multiplies what a client gets through where many are under way at once, and costs a
// lone one a little. Unlike a plain *redis.AutoPipeliner it ends a call at its context's deadline;
// a call that has ended so may still run on the server, as after any timeout.
func AutoPipeline(c redis.UniversalClient) (Pipeline, error) {
	switch c := c.(type) {
	case *redis.Client:
		p, err := c.AsyncAutoPipeline()
		if err != nil {
			return nil, fmt.Errorf("redisclient: %w", err)
		}
		return clientPipeline{pipeline{p}, c}, nil
	case *redis.ClusterClient:
		p, err := c.AsyncAutoPipeline()
		if err != nil {
			return nil, fmt.Errorf("redisclient: %w", err)
		}
		return clusterPipeline{pipeline{p}, c}, nil
	}
	return nil, fmt.Errorf("redisclient: AutoPipeline: %T is no *redis.Client or *redis.ClusterClient", c)
}

// clientPipeline and clusterPipeline show the options of what they stand on, from which a limiter
// learns that deadlines are heeded and whether keys need hash tags.
type clientPipeline struct {
	pipeline
	client *redis.Client
}

func (p clientPipeline) Options() *redis.Options { return p.client.Options() }

type clusterPipeline struct {
	pipeline
	client *redis.ClusterClient
}

func (p clusterPipeline) Options() *redis.ClusterOptions { return p.client.Options() }

type pipeline struct{ *redis.AutoPipeliner }

func (p pipeline) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	return p.run(ctx, "eval", script, keys, args)
}

func (p pipeline) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	return p.run(ctx, "evalsha", sha, keys, args)
}

func (p pipeline) run(ctx context.Context, name, script string, keys []string, args []any) *redis.Cmd {
	line := make([]any, 3, 3+len(keys)+len(args))
	line[0], line[1], line[2] = name, script, len(keys)
	for _, key := range keys {
		line = append(line, key)
	}
	cmd := redis.NewCmd(ctx, append(line, args...)...)
	if len(keys) > 0 {
		cmd.SetFirstKeyPos(3)
	}
	if err := p.Submit(ctx, cmd).WaitContext(ctx); err != nil && ctx.Err() != nil {
		return redis.NewCmdResult(nil, err) // the pipeline may still write to cmd
	}
	return cmd
}
