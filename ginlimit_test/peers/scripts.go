package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed testdata/plain.lua
var plainSource string

//go:embed testdata/noop.lua
var noopSource string

//go:embed testdata/commands.lua
var commandsSource string

// variant is a script as it is called: on one of the two clocks.
type variant struct {
	name        string
	source      string
	serverClock bool
	oneKey      bool // several windows need several calls
	noop        bool // decides nothing
	sha         string
}

// The variants that the ratios are about.
const (
	plainName      = "plain.lua"
	oursCallerName = "sliding_window.lua, caller's clock"
	oursServerName = "sliding_window.lua, server's clock"
)

// variants are the plain form, with which the others are compared, ours and those in the files, on
// both clocks each, and last a script that does nothing.
func variants(ours string, files []string) ([]*variant, error) {
	all := []*variant{
		{name: plainName, source: plainSource, oneKey: true},
		{name: oursCallerName, source: ours},
		{name: oursServerName, source: ours, serverClock: true},
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		name := filepath.Base(file)
		all = append(all,
			&variant{name: name + ", caller's clock", source: string(source)},
			&variant{name: name + ", server's clock", source: string(source), serverClock: true})
	}
	return append(all, &variant{name: "a script that does nothing", source: noopSource, noop: true}), nil
}

// requests are how many it takes to decide one call.
func (v *variant) requests(s scenario) int {
	if v.oneKey && s.day {
		return 2
	}
	return 1
}

// scriptCost is what decisions of one variant in one scenario cost, in µs, a value a round.
type scriptCost struct {
	script    spread // inside the script, by commandstats: what the ratios are about
	scriptCPU spread // the same by CPU time, which other processes cannot take away
	cpu       spread // the server's CPU time for the whole request, with reading and answering
	took      spread // between replies, through a pipeline in which the server never idles
}

// scriptRun compares scripts on one server.
type scriptRun struct {
	control  *redis.Client
	pump     *pump
	variants []*variant
}

func newScriptRun(ctx context.Context, addr string, control *redis.Client, all []*variant) (*scriptRun, error) {
	for _, v := range all {
		sha, err := control.ScriptLoad(ctx, v.source).Result()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.name, err)
		}
		v.sha = sha
	}
	p, err := dialPump(addr)
	if err != nil {
		return nil, err
	}
	return &scriptRun{control, p, all}, nil
}

// round gives every variant the same logs, under keys of its own, and then takes the visits in
// turn, each by all variants one after the other. It appends to every cost the median of its visits:
// what another process did to one of them is not the script's.
func (r *scriptRun) round(ctx context.Context, s scenario, round int, costs []scriptCost) error {
	if err := r.control.FlushAll(ctx).Err(); err != nil {
		return err
	}
	now := time.Now().UnixMilli()
	for i := range r.variants {
		if err := r.fill(s, prefix(i), now); err != nil {
			return fmt.Errorf("fill: %w", err)
		}
	}
	each := make([]scriptCost, len(r.variants))
	for visit := range visits {
		for turn := range r.variants {
			i := (turn + round + visit) % len(r.variants)
			v := r.variants[i]
			spent, took, err := r.visit(ctx, s, v, prefix(i), strconv.FormatInt(now, 10), visit)
			if err != nil {
				return fmt.Errorf("%s: %s, visit %d: %w", v.name, s.name, visit, err)
			}
			decisions := float64(s.users * s.calls)
			c := &each[i]
			c.script = append(c.script, spent.usec["evalsha"]/decisions)
			c.cpu = append(c.cpu, spent.cpuUsec/decisions)
			c.took = append(c.took, float64(took)/float64(time.Microsecond)/decisions)
		}
	}
	for i, c := range each {
		costs[i].script = append(costs[i].script, c.script.median())
		costs[i].cpu = append(costs[i].cpu, c.cpu.median())
		costs[i].took = append(costs[i].took, c.took.median())
	}
	return nil
}

func prefix(variant int) string { return "ratelimit:v" + strconv.Itoa(variant) }

func (r *scriptRun) fill(s scenario, prefix string, now int64) error {
	var requests []byte
	replies := 0
	for user := range s.users {
		var n int
		requests, n = s.fill(requests, s.keys(prefix, user), now)
		replies += n
	}
	_, err := r.pump.run(requests, replies, nil)
	return err
}

// visit lets every user make the calls of a visit, and fails if a verdict is not the scenario's.
func (r *scriptRun) visit(ctx context.Context, s scenario, v *variant, prefix, now string, visit int) (usage, time.Duration, error) {
	var requests []byte
	replies := 0
	for i := range s.calls {
		for n := range s.users {
			var more int
			requests, more = s.call(requests, v, s.keys(prefix, n*stride%s.users), now, visit*s.calls+i)
			replies += more
		}
	}
	before, err := usageOf(ctx, r.control)
	if err != nil {
		return usage{}, 0, err
	}
	took, err := r.pump.run(requests, replies, func(first string, values int) error {
		if !v.noop && (first == "1") != s.allowed {
			return fmt.Errorf("verdict %s of %d values, want allowed %t", first, values, s.allowed)
		}
		return nil
	})
	if err != nil {
		return usage{}, 0, err
	}
	after, err := usageOf(ctx, r.control)
	return after.minus(before), took, err
}
