package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gin-tiers/ratelimit/tiers"
)

// writeMemory writes what a full log takes of the server's memory, and a user of each tier.
func writeMemory(ctx context.Context, w io.Writer, control *redis.Client, p *pump, most int) error {
	used := func(entries int) (int64, string, error) {
		const key = "ratelimit:user_8421:86400"
		if err := control.Del(ctx, key).Err(); err != nil {
			return 0, "", err
		}
		if err := p.fillLog(key, entries, time.Now(), 24*time.Hour); err != nil {
			return 0, "", err
		}
		encoding, err := control.ObjectEncoding(ctx, key).Result()
		if err != nil {
			return 0, "", err
		}
		bytes, err := control.MemoryUsage(ctx, key, 0).Result() // 0 = every entry is looked at
		return bytes, encoding, err
	}

	fmt.Fprint(w, "\n### Memory of a full log\n\n| limit | bytes | bytes a request | encoding |\n|--:|--:|--:|---|\n")
	for _, limit := range []int{5, 60, 100, 128, 129, 600, 5_000, 100_000} {
		if limit > most {
			break
		}
		bytes, encoding, err := used(limit)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "| %s | %s | %.0f | %s |\n", thousands(float64(limit)), thousands(float64(bytes)), float64(bytes)/float64(limit), encoding)
	}

	fmt.Fprint(w, "\n### Memory of a user who has used up both windows\n\n| tier | minute | day | bytes |\n|---|--:|--:|--:|\n")
	table := tiers.Default()
	for _, t := range []tiers.Tier{tiers.Free, tiers.Pro, tiers.Enterprise} {
		limits := table.Lookup(t)
		if limits.PerDay > most {
			break
		}
		perMinute, _, err := used(limits.PerMinute)
		if err != nil {
			return err
		}
		perDay, _, err := used(limits.PerDay)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", t, thousands(float64(limits.PerMinute)), thousands(float64(limits.PerDay)), thousands(float64(perMinute+perDay)))
	}
	return nil
}
