package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// usage is what a Redis server has spent since it started. The difference of two is a cell's.
type usage struct {
	usec     map[string]float64 // wall time inside a command, µs, by name: from clients and from scripts alike
	cpuUsec  float64            // the main thread's CPU time, µs, network and parsing included
	netBytes float64            // received and sent
}

// usageOf asks the server; the asking itself is in the next answer, not in this one.
func usageOf(ctx context.Context, control *redis.Client) (usage, error) {
	text, err := control.Info(ctx, "commandstats", "cpu", "stats").Result()
	if err != nil {
		return usage{}, fmt.Errorf("info: %w", err)
	}
	u := usage{usec: map[string]float64{}}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		command, isCommand := strings.CutPrefix(name, "cmdstat_")
		var n float64
		switch {
		case isCommand:
			var calls int
			if _, err = fmt.Sscanf(value, "calls=%d,usec=%f,", &calls, &n); err == nil {
				u.usec[command] = n
			}
		case name == "used_cpu_sys_main_thread" || name == "used_cpu_user_main_thread":
			n, err = strconv.ParseFloat(value, 64)
			u.cpuUsec += n * 1e6
		case name == "total_net_input_bytes" || name == "total_net_output_bytes":
			n, err = strconv.ParseFloat(value, 64)
			u.netBytes += n
		}
		if err != nil {
			return usage{}, fmt.Errorf("info: %s: %w", line, err)
		}
	}
	return u, nil
}

// minus is what was spent since before.
func (u usage) minus(before usage) usage {
	d := usage{usec: map[string]float64{}, cpuUsec: u.cpuUsec - before.cpuUsec, netBytes: u.netBytes - before.netBytes}
	for command, usec := range u.usec {
		d.usec[command] = usec - before.usec[command]
	}
	return d
}
