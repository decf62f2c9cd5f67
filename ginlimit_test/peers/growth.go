package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// addGrowth adds rows of ours along the axes on which cost might grow, up to most users and entries.
func addGrowth(add func(row, ...limiter), most int) {
	at := func(axis string, n int, r row) {
		if n <= most {
			r.group, r.label = "One decision, by "+axis, number(float64(n), 0)
			r.windows = []window{{math.MaxInt32, 24 * time.Hour}} // nothing leaves it, nobody fills it
			add(r, ginlimitSeparate)
		}
	}
	for n := 10; n <= most; n *= 10 {
		at("users", n, row{users: n, held: 5})
	}
	for _, n := range []int{5, 60, 600, 5_000, 100_000} {
		at("entries in each log", n, row{users: max(2, min(10_000, 200_000/n)), held: n}) // about as many together
	}
	for n := 1; n <= 1024; n *= 4 {
		at("goroutines", n, row{users: min(most, 10_000), held: 5, callers: n})
	}
}

// refill makes the logs of the row's users anew, and no others: the newest entry is half a spacing old.
func (b *bench) refill(ctx context.Context, r row) error {
	if err := b.control.FlushAll(ctx).Err(); err != nil {
		return err
	}
	newest := time.Now().Add(-spacing / 2)
	entries := make([]redis.Z, r.held)
	for users := range slices.Chunk(b.usersOf(r), 100) {
		_, err := b.control.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for _, user := range users {
				key := "ratelimit:" + user + ":86400"
				for i := range entries {
					at := newest.Add(-time.Duration(i) * min(spacing, 12*time.Hour/time.Duration(r.held))) // in a day
					entries[i] = redis.Z{Score: float64(at.UnixMilli()), Member: uuid.NewString()}
				}
				for part := range slices.Chunk(entries, 1000) {
					pipe.ZAdd(ctx, key, part...)
				}
				pipe.Expire(ctx, key, 24*time.Hour)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// writeMemory writes what a full log takes of the server's memory.
func (b *bench) writeMemory(ctx context.Context, w io.Writer) error {
	fmt.Fprint(w,
		"\n### Memory of a full log\n\n| limit | bytes | bytes a request | encoding |\n|--:|--:|--:|---|\n")
	for _, limit := range []int{5, 60, 100, 128, 129, 600, 5_000, 100_000} {
		if limit > b.growth {
			break
		}
		r := row{users: 1, held: limit}
		if err := b.refill(ctx, r); err != nil {
			return err
		}
		key := "ratelimit:" + b.usersOf(r)[0] + ":86400"
		bytes, err := b.control.MemoryUsage(ctx, key, 0).Result() // 0 = every entry is looked at
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "| %s | %s | %.0f | %s |\n", number(float64(limit), 0), number(float64(bytes), 0),
			float64(bytes)/float64(limit), b.control.ObjectEncoding(ctx, key).Val())
	}
	return nil
}
