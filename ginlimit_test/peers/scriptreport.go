package main

import (
	"context"
	"fmt"
	"io"
)

// compareScripts runs all scenarios, writes a table for each, and returns the ratios that must be
// shown.
func compareScripts(ctx context.Context, w io.Writer, r *scriptRun, all []scenario, rounds int) ([]ratio, error) {
	mix := make([]scriptCost, len(r.variants))
	for _, s := range all {
		costs := make([]scriptCost, len(r.variants))
		for round := range rounds {
			if err := r.round(ctx, s, round, costs); err != nil {
				return nil, err
			}
		}
		findScriptCPU(s, r.variants, costs)
		writeScriptTable(w, fmt.Sprintf("%s (%d users, limit %d)", s.name, s.users, s.limit), r.variants, costs)
		if s.day {
			continue // the plain form makes two calls here: that is another comparison
		}
		for i, c := range costs {
			mix[i].add(c)
		}
	}
	writeScriptTable(w, "one window, the sum of all scenarios, a decision of each", r.variants, mix)
	shown := func(what string, ours int, want float64) ratio {
		return ratio{what: what, rounds: mix[0].script.over(mix[ours].script), cpu: mix[0].scriptCPU.over(mix[ours].scriptCPU), want: want}
	}
	return []ratio{
		shown("script's server time: plain form / ours, caller's clock", 1, 1.15),
		shown("script's server time: plain form, caller's clock / ours, server's clock", 2, 0.97),
	}, nil
}

// findScriptCPU takes from the CPU time of each request what reading it and answering cost. That is
// what an empty script's request costs without the script, whose time is taken from the round in
// which nobody disturbed it.
func findScriptCPU(s scenario, variants []*variant, costs []scriptCost) {
	empty := costs[len(costs)-1]
	undisturbed := empty.script.min()
	for i, v := range variants {
		costs[i].scriptCPU = make(spread, len(costs[i].cpu))
		for round, cpu := range costs[i].cpu {
			costs[i].scriptCPU[round] = cpu - float64(v.requests(s))*(empty.cpu[round]-undisturbed)
		}
	}
}

// add makes c the cost of one decision more, round by round.
func (c *scriptCost) add(d scriptCost) {
	c.script, c.scriptCPU = c.script.plus(d.script), c.scriptCPU.plus(d.scriptCPU)
	c.cpu, c.took = c.cpu.plus(d.cpu), c.took.plus(d.took)
}

func writeScriptTable(w io.Writer, title string, variants []*variant, costs []scriptCost) {
	fmt.Fprintf(w, "\n### Script: %s\n\n", title)
	fmt.Fprintln(w, "| script | µs in the script (range) | µs of CPU in it (range) | µs of CPU, whole request | plain.lua's / this one's: in the script (range) | CPU in it (range) | throughput (range) |")
	fmt.Fprintln(w, "|---|--:|--:|--:|--:|--:|--:|")
	plain := costs[0]
	for i, c := range costs {
		fmt.Fprintf(w, "| %s | %s | %s | %.2f | %s | %s | %s |\n", variants[i].name,
			c.script.text("%.2f"), c.scriptCPU.text("%.2f"), c.cpu.median(),
			plain.script.over(c.script).text("%.3f"), plain.scriptCPU.over(c.scriptCPU).text("%.3f"), plain.took.over(c.took).text("%.3f"))
	}
}
