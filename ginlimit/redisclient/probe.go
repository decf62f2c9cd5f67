package redisclient

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/gin-tiers/ratelimit/luascripts"
)

// The keys of a user that cannot exist: "!" is always encoded in ids. The plain keys have different slots.
// The tagged ones share a slot, as the keys of a real user do.
var (
	plainKeys  = [2]string{"ratelimit:!self-check:1", "ratelimit:!self-check:2"}
	taggedKeys = [2]string{"ratelimit:{!self-check}:1", "ratelimit:{!self-check}:2"}
)

// probe is one run of a script on the first key or on both.
type probe struct {
	file   string
	script *redis.Script
	keys   int
	args   []any
}

// probes run what a limiter runs, and end with both keys deleted. From the first admit.lua on they are for
// budgets of tokens and money, which are optional: if the user may not run these, that is not a problem.
func probes() []probe {
	const second, ttl = 1000, 2
	window := func(limit int, member string) []any { return []any{"", second, limit, member, ttl} }
	return []probe{
		{"sliding_window.lua", luascripts.SlidingWindow, 1, window(2, "a")},
		{"sliding_window.lua", luascripts.SlidingWindow, 1, window(2, "b")},
		{"sliding_window.lua", luascripts.SlidingWindow, 1, window(1, "c")},
		{"peek.lua", luascripts.PeekScript, 1, []any{"", "log", second, 1}},
		{"finish.lua", luascripts.FinishScript, 1, []any{"", "b", 0, "log", second, 1, 0, ttl}},
		{"reset.lua", luascripts.ResetScript, 1, nil},
		{"sliding_window.lua", luascripts.SlidingWindow, 2, append(window(1, "d"), second, 1, ttl)},
		{"group.lua", luascripts.GroupScript, 2, []any{"", 1, second, 1, "e", ttl, 1, second, 1, "f", ttl}},
		{"reset.lua", luascripts.ResetScript, 2, nil},
		{"admit.lua", luascripts.AdmitScript, 2,
			[]any{"", "g", "sum", second, 2, 1, ttl, "lease", second, 1, 1, ttl}},
		{"finish.lua", luascripts.FinishScript, 2,
			[]any{"", "g", 0, "sum", second, 1, 2, ttl, "lease", second, 1, 0, ttl}},
		{"reset.lua", luascripts.ResetScript, 2, nil},
		{"renew.lua", luascripts.RenewScript, 1, []any{"", second, "g"}},
	}
}

// load loads the scripts into the server.
func (s server) load(ctx context.Context) []finding {
	loaded := map[string]bool{}
	for _, p := range probes() {
		if loaded[p.file] {
			continue
		}
		loaded[p.file] = true
		if err := p.script.Load(ctx, s.client).Err(); err != nil {
			return []finding{s.finding(unrunnable, "the scripts cannot be loaded: "+s.trouble(ctx, err))}
		}
	}
	return nil
}

// checkScripts runs the probes, unless the findings so far show that they cannot run. It reports only the
// first that fails.
func (s server) checkScripts(ctx context.Context, found []finding) []finding {
	if hasKind(found, unusable) || hasKind(found, unrunnable) {
		return nil
	}
	told, optional := hasKind(found, knownCluster), false
	for _, p := range probes() {
		optional = optional || p.script == luascripts.AdmitScript
		err := p.script.Run(ctx, s.client, s.keys[:p.keys], p.args...).Err()
		_, moved := redis.IsMovedError(err)
		switch {
		case err == nil:
			continue
		case optional && mayNot(err):
			return nil
		case told && (moved || redis.HasErrorPrefix(err, "CROSSSLOT")):
			return nil
		case redis.HasErrorPrefix(err, "CROSSSLOT"):
			return []finding{s.finding(hiddenCluster, "a Cluster behind one endpoint: it refuses a script over two "+
				"keys of different slots (CROSSSLOT); the limiter needs ginlimit.WithHashTags, if it has it not yet")}
		}
		return []finding{s.finding(unrunnable, "the scripts cannot be run: "+p.file+": "+s.trouble(ctx, err))}
	}
	return nil
}
