package main

import (
	"fmt"
	"io"
)

// ratio is one thing that must be shown. Each side was measured shortly before or after the other.
type ratio struct {
	what   string
	rounds spread
	cpu    spread // the same of CPU time, which other processes cannot take away: a cross-check
	want   float64
	bound  bool // of the row above; it has no aim of its own
}

func writeRatios(w io.Writer, ratios []ratio) {
	fmt.Fprint(w, "\n### Ratios\n\n| ratio, above 1 is better | by time (range) | aim | | by CPU time (range) |\n|---|---|---|---|---|\n")
	for _, r := range ratios {
		want := fmt.Sprintf("%.2f", r.want)
		if r.bound {
			want = "–"
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", r.what, r.rounds.text("%.3f"), want, r.verdict(), r.cpu.text("%.3f"))
	}
}

func (r ratio) verdict() string {
	switch {
	case len(r.rounds) == 0:
		return "not measured"
	case r.bound:
		return "its bound"
	case r.rounds.median() >= r.want:
		return "met"
	default:
		return fmt.Sprintf("**missed by %.0f %%**", 100*(1-r.rounds.median()/r.want))
	}
}

// ratios are those of decisions and of HTTP.
func (c comparison) ratios() []ratio {
	one, two, web := c.bestPeer(groupOne), c.bestPeer(groupTwo), c.bestPeer(groupHTTP)
	ours := func(auto bool) *result { return c.find(groupOne, ginlimitSeparate.name, auto) }
	none := c.find(groupHTTP, noLimiter.name, false)

	rates := func(what string, a, b *result, want float64) ratio {
		return ratio{what: what, rounds: a.rate().over(b.rate()).each(c.slices), cpu: b.cpu().over(a.cpu()).each(c.slices), want: want}
	}
	added := func(what string, a, b *result, want float64) ratio {
		interval := a.interval().minus(none.interval()).over(b.interval().minus(none.interval()))
		cpu := a.cpu().minus(none.cpu()).over(b.cpu().minus(none.cpu()))
		return ratio{what: what, rounds: interval.each(c.slices), cpu: cpu.each(c.slices), want: want}
	}
	bound := rates("one window, decisions/s, plain client: our script's five commands, deciding nothing / best peer"+named(one), c.find(groupBaseline, commandsAlone.name, false), one, 0)
	bound.bound = true
	return []ratio{
		rates("one window, decisions/s, plain client: ours / best peer"+named(one), ours(false), one, 0.9),
		bound,
		rates("one window, decisions/s: ours over AutoPipeline / best peer, plain client"+named(one), ours(true), one, 1.1),
		rates("one window, decisions/s: ours / redis_rate, both over AutoPipeline", ours(true), c.find(groupOne, redisRate.name, true), 0.95),
		rates("two windows, decisions/s: ours, atomic, over AutoPipeline / best peer, plain client"+named(two), c.find(groupTwo, ginlimitAtomic.name, true), two, 1.5),
		added("HTTP, two windows, added time, plain client: best peer"+named(web)+" / ours, atomic", web, c.find(groupHTTP, ginlimitAtomic.name, false), 1.0),
		added("HTTP, two windows, added time: best peer, plain client"+named(web)+" / ours, atomic, over AutoPipeline", web, c.find(groupHTTP, ginlimitAtomic.name, true), 1.4),
	}
}

func named(r *result) string {
	if r == nil {
		return ""
	}
	return " (" + r.limiter.name + ")"
}
