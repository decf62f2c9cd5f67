package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

//go:embed testdata/plain.lua
var plainSource string

// scriptFolder is where our script is, and preludes are what is put in front of it.
const scriptFolder = "../../luascripts"

var preludes = []string{"clock.lua", "decide.lua"}

// The scripts that the ratios are about.
const (
	plainScript  = "plain.lua"
	oursOnCaller = "sliding_window.lua, caller's clock"
	oursOnServer = "sliding_window.lua, server's clock"
)

// addScripts adds rows that compare our script, and those in the files, with the plain form, on both clocks
// where they know both. They have about as many entries in each group, so that what the server's caches hold
// differs little.
func addScripts(add func(row, ...limiter), o options) error {
	var prelude string
	for _, file := range preludes {
		source, err := os.ReadFile(filepath.Join(scriptFolder, file))
		if err != nil {
			return err
		}
		prelude += string(source)
	}
	scripts := []limiter{scriptLimiter(plainScript, plainSource, false)}
	for _, file := range append([]string{filepath.Join(scriptFolder, "sliding_window.lua")}, o.scripts...) {
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name, whole := filepath.Base(file), prelude+string(source)
		scripts = append(scripts, scriptLimiter(name+", caller's clock", whole, false),
			scriptLimiter(name+", server's clock", whole, true))
	}
	n, callers := 10, 10
	if o.users >= 5_000 {
		n, callers = o.users/5_000*50, 50 // so that a turn of all callers sees everybody once
	}
	for _, r := range []row{
		{group: "free, window not full", users: 50 * n, visits: 5, windows: []window{{5, spacing}}},
		{group: "free, at its limit", users: 50 * n, visits: 5, held: 5, windows: []window{{5, leaving}}},
		{group: "free, rejected", users: 50 * n, visits: 5, held: 5, windows: []window{{5, 6 * spacing}},
			full: true},
		{group: "pro, at its limit", users: 10 * n, visits: 25, held: 60, windows: []window{{60, leaving}}},
		{group: "enterprise, at its limit", users: n, visits: 250, held: 600, windows: []window{{600, leaving}}},
	} {
		r.group, r.callers = "Script: "+r.group, callers
		add(r, scripts...)
		r.full = false
		add(r, noopScript)
	}
	return nil
}

const (
	// spacing lies between the entries of a log. It is far longer than a measurement, so that the server's clock
	// finds in the log what the caller's finds.
	spacing = time.Minute

	// leaving is a window that one entry leaves from visit to visit. As real time cannot pass in a benchmark, it
	// becomes shorter: that works on any clock.
	leaving = 0
)

// scriptWindow is what a call asks for on a visit, counted from 0.
func scriptWindow(w window, visit int) time.Duration {
	if w.length == leaving {
		return time.Duration(w.limit-visit)*spacing - 3*spacing/4
	}
	return w.length
}

// scriptLimiter asks a script as ginlimit does.
func scriptLimiter(name, source string, serverClock bool) limiter {
	script := redis.NewScript(source)
	return limiter{
		name:     name,
		commands: map[string]float64{"evalsha": 1},
		one: func(rdb redis.UniversalClient, w window) decide {
			return func(ctx context.Context, user string) (verdict, error) {
				visit, _ := ctx.Value(visitKey{}).(int)
				window, now := scriptWindow(w, visit), any("")
				if !serverClock {
					now = time.Now().UnixMilli()
				}
				reply, err := script.Run(ctx, rdb, []string{"ratelimit:" + user + ":86400"}, now,
					window.Milliseconds(), w.limit, uuid.NewString(), int(window/time.Second)+1).Int64Slice()
				if err == nil && len(reply) != 3 {
					err = fmt.Errorf("reply %v, want three numbers", reply)
				}
				return verdict{allowed: err == nil && reply[0] == 1}, err
			}
		},
	}
}

// scriptRatios compare the sums of a decision in each group.
func (c comparison) scriptRatios() []ratio {
	shown := func(what, ours string, aim float64) ratio {
		var both []*result
		for _, script := range []string{plainScript, ours} {
			for _, r := range c.results {
				if r.limiter.name == script {
					both = append(both, r)
				}
			}
		}
		sums := func(of column) func([]cell) float64 {
			return func(cells []cell) float64 {
				var plain, ours float64
				for i, cell := range cells[:len(cells)/2] {
					plain += cell[of]
					ours += cells[len(cells)/2+i][of]
				}
				return plain / ours
			}
		}
		return ratio{what, c.rounds(sums(command), both...), c.rounds(sums(serving), both...), aim}
	}
	return []ratio{
		shown("script's server time: plain form / ours, caller's clock", oursOnCaller, 1.15),
		shown("script's server time: plain form, caller's clock / ours, server's clock", oursOnServer, 0.97),
	}
}
