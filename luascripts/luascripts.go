// Package luascripts holds the Lua scripts that decide, one .lua file each, and the typed Go calls
// that know their argument order and decode their replies.
//
// Each file opens with its contract: KEYS, ARGV, reply, units, complexity. A decision is one script
// execution: one EVALSHA, or one EVAL after it where the server does not know the script yet.
//
// All functions are safe for concurrent use. A Redis error comes back wrapped, so that errors.Is,
// errors.As and the go-redis predicates (redis.IsOOMError, …) see through it.
package luascripts

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed sliding_window.lua
var slidingWindow string

//go:embed peek.lua
var peek string

//go:embed give_back.lua
var giveBack string

//go:embed reset.lua
var reset string

// The scripts. Hash() of each is the SHA-1 by which the server knows it.
var (
	SlidingWindow  = redis.NewScript(slidingWindow) // sliding_window.lua
	PeekScript     = redis.NewScript(peek)          // peek.lua
	GiveBackScript = redis.NewScript(giveBack)      // give_back.lua
	ResetScript    = redis.NewScript(reset)         // reset.lua
)

// ServerTime, as the now of a call, makes the script read the Redis server's own clock.
const ServerTime = ""

// slack is how much longer than its window a key lives after its last admission.
const slack = time.Second

// Admit runs sliding_window.lua: it decides one request against all windows at once.
//
// keys[i] is the log of budgets[i]; there is at least one, shortest window first. now is Unix time
// in milliseconds, in decimal, or ServerTime. member identifies the request; repeating the call
// with the same member is safe. One Reply comes back for each key when the request is admitted;
// otherwise the replies end with the first window that rejected. It panics without a budget. One
// round trip, O(log N) for N requests in a window.
func Admit(ctx context.Context, rdb redis.Scripter, now, member string, keys []string, budgets []Budget) ([]Reply, error) {
	args := make([]any, 0, 2+3*len(budgets))
	args = append(args, now, budgets[0].windowMS, budgets[0].limitArg, member, budgets[0].ttlS)
	for _, b := range budgets[1:] {
		args = append(args, b.windowMS, b.limitArg, b.ttlS)
	}
	raw, err := SlidingWindow.Run(ctx, rdb, keys, args...).Result()
	if err != nil {
		return nil, fmt.Errorf("luascripts: sliding_window: %w", err)
	}
	replies, err := decodeDecision(raw, len(keys))
	if err != nil {
		return nil, fmt.Errorf("luascripts: sliding_window: %w", err)
	}
	return replies, nil
}

// Peek runs peek.lua: it tells what Admit would find, and writes nothing. keys[i] is the log of
// budgets[i]; there is at least one. One Reply comes back for each key; Count does not include the
// asking request. One round trip, O(log N) a window.
func Peek(ctx context.Context, rdb redis.Scripter, now string, keys []string, budgets []Budget) ([]Reply, error) {
	args := make([]any, 0, 1+2*len(budgets))
	args = append(args, now)
	for _, b := range budgets {
		args = append(args, b.windowMS, b.limitArg)
	}
	raw, err := PeekScript.Run(ctx, rdb, keys, args...).Result()
	if err != nil {
		return nil, fmt.Errorf("luascripts: peek: %w", err)
	}
	replies, err := decodeEach(raw, len(keys))
	if err != nil {
		return nil, fmt.Errorf("luascripts: peek: %w", err)
	}
	return replies, nil
}

// GiveBack runs give_back.lua: it takes member out of all windows and puts their TTLs back. keys[i]
// is the log of budgets[i]; there is at least one. A member that is not there is no error. One round
// trip, O(log N) a window.
func GiveBack(ctx context.Context, rdb redis.Scripter, now, member string, keys []string, budgets []Budget) error {
	args := make([]any, 0, 2+len(budgets))
	args = append(args, now, member)
	for _, b := range budgets {
		args = append(args, b.windowMS)
	}
	if err := GiveBackScript.Run(ctx, rdb, keys, args...).Err(); err != nil {
		return fmt.Errorf("luascripts: give_back: %w", err)
	}
	return nil
}

// Reset runs reset.lua: it deletes the keys, of which there is at least one, all in one step. One
// round trip.
func Reset(ctx context.Context, rdb redis.Scripter, keys []string) error {
	if err := ResetScript.Run(ctx, rdb, keys).Err(); err != nil {
		return fmt.Errorf("luascripts: reset: %w", err)
	}
	return nil
}
