package redisclient

import (
	"cmp"
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

// AutoPipeline returns a Pipeline over c, which New made: calls of concurrent requests share round
// trips. It pays where many are under way at once and costs a lone call a little. All Pipelines of one
// client are one: make it once, and close it when no limiter uses it. Scripts may run in any order. A
// script that Eval or EvalSha runs through it ends at its context's deadline, unlike on a plain
// *redis.AutoPipeliner, and may then still run on the server.
//
// A client's own AutoPipelineOptions win. The error is for a client that is neither *redis.Client nor
// *redis.ClusterClient, such as a *redis.Ring, for one that is closed, and for options that go-redis
// refuses.
func AutoPipeline(c redis.UniversalClient) (Pipeline, error) {
	switch c := c.(type) {
	case *redis.Client:
		p, err := c.AsyncAutoPipelineWithOptions(cmp.Or(c.Options().AutoPipelineOptions, batches))
		if err != nil {
			return nil, fmt.Errorf("redisclient: %w", err)
		}
		return clientPipeline{pipeline{p}, c}, nil
	case *redis.ClusterClient:
		p, err := c.AsyncAutoPipelineWithOptions(cmp.Or(c.Options().AutoPipelineOptions, batches))
		if err != nil {
			return nil, fmt.Errorf("redisclient: %w", err)
		}
		return clusterPipeline{pipeline{p}, c}, nil
	}
	return nil, fmt.Errorf("redisclient: AutoPipeline: %T is no *redis.Client or *redis.ClusterClient", c)
}

// batches are the settings. go-redis's default gathers all callers into one batch, then waits for all
// replies: the server idles while this process works, and the other way round. Up to four batches at
// once let both work. A batch is sent from 16 calls on, which leaves little of the cost of a round
// trip, and may be larger. A call that finds the pipeline idle is sent at once. Each caller waits for
// its own reply, so decisions need no order.
var batches = &redis.AutoPipelineOptions{MaxBatchSize: 16, MaxConcurrentBatches: 4, Unordered: true}

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
	if err := ctx.Err(); err != nil {
		return redis.NewCmdResult(nil, err) // its caller has left, and is not charged
	}
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
