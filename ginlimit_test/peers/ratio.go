package main

import (
	"fmt"
	"io"
)

// ratio is one thing that must be shown. Each side was measured shortly before or after the other, or in turn
// with it.
type ratio struct {
	what string
	time spread
	cpu  spread // the same of CPU time, which other processes cannot take away: a cross-check
	aim  float64
}

// faster and leaner compare the first cell with the second, by rate and by CPU time.
func faster(c []cell) float64 { return c[0][rate] / c[1][rate] }
func leaner(c []cell) float64 { return c[1].cpu() / c[0].cpu() }

// sooner compares latencies.
func sooner(of column) func([]cell) float64 {
	return func(c []cell) float64 { return c[1][of] / c[0][of] }
}

// addsLess and addsLeaner compare what the first two add to the third, which has no limiter.
func addsLess(c []cell) float64 {
	none := 1 / c[2][rate]
	return (1/c[1][rate] - none) / (1/c[0][rate] - none)
}

func addsLeaner(c []cell) float64 {
	return (c[1].cpu() - c[2].cpu()) / (c[0].cpu() - c[2].cpu())
}

// ratios are those of decisions and of HTTP, for the default client and for the one with deadlines. Peers
// have the default client, as their users do.
func (c comparison) ratios() (all []ratio) {
	for _, over := range []client{plain, deadlines} {
		find := func(group string, l limiter) *result { return c.find(group, l, over) }
		add := func(what string, a, b *result, aim float64) {
			time, cpu := c.rounds(faster, a, b), c.rounds(leaner, a, b)
			all = append(all, ratio{what + over.suffix(), time, cpu, aim})
		}
		waits := func(what string, of column, a, b *result, aim float64) {
			all = append(all, ratio{what + over.suffix(), c.rounds(sooner(of), a, b), nil, aim})
		}
		peer := func(group string) (best *result, name string) {
			if best = c.bestPeer(group); best != nil {
				name = " (" + best.limiter.name + ")"
			}
			return best, "best peer, plain client" + name
		}
		ours, alone := find(groupOne, ginlimitSeparate), find(groupOne, ginlimitAlone)
		best, name := peer(groupOne)
		add("one window, decisions/s: ours / "+name, ours, best, 1.6)
		add("one window, decisions/s: ours / redis_rate over AutoPipeline",
			ours, c.find(groupOne, redisRate, pipelined), 1.1)
		add("one window, decisions/s: ours / PING of the same client", ours, find(groupBaseline, ping), 1.0)
		add("one window, decisions/s: ours / ours, one by one", ours, alone, 1.25)
		best, name = peer(groupTwo)
		add("two windows in Gin, decisions/s: ours, atomic / "+name, find(groupTwo, ginlimitAtomic), best, 2.5)
		best, name = peer(groupHTTP)
		web := []*result{find(groupHTTP, ginlimitAtomic), best, c.find(groupHTTP, noLimiter, plain)}
		all = append(all, ratio{"HTTP, two windows, added time: " + name + " / ours, atomic" + over.suffix(),
			c.rounds(addsLess, web...), c.rounds(addsLeaner, web...), 2.2})
		waits("one window, a lone caller, p50: ours, one by one / ours", p50,
			find(groupLone, ginlimitSeparate), find(groupLone, ginlimitAlone), 0.95)
		waits("one window, p99: ours, one by one / ours", p99, ours, alone, 1.0)
		best, name = peer(groupRejected)
		add("rejected, one window, decisions/s: ours, rejection cache / "+name,
			find(groupRejected, ginlimitCached), best, 20)
	}
	return all
}

func writeRatios(w io.Writer, ratios []ratio) {
	fmt.Fprint(w, "\n### Ratios\n\n"+
		"| ratio, above 1 is better | by time (range) | aim | | by CPU time (range) |\n|---|---|---|---|---|\n")
	for _, r := range ratios {
		verdict := "met"
		if short := 100 * (1 - r.time.median()/r.aim); len(r.time) == 0 {
			verdict = "not measured"
		} else if short > 0 {
			verdict = fmt.Sprintf("**missed by %.0f %%**", short)
		}
		fmt.Fprintf(w, "| %s | %s | %.2f | %s | %s |\n", r.what, r.time.text(3), r.aim, verdict, r.cpu.text(3))
	}
}
