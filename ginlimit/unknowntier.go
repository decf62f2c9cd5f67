package ginlimit

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/plan"
	"github.com/gin-tiers/ratelimit/tiers"
)

// fallbackFor returns the fallback for a tier that the table of a scope does not name, and whether to report
// that tier as unknown. A missing tier is not reported. Scope is "" for the user's tables.
func (e *engine) fallbackFor(
	ctx context.Context, table *table, scope string, t tiers.Tier,
) (fallback tiers.Tier, unknown bool) {
	fallback = table.tiers.Fallback()
	if t != "" && e.unknownTiers.add(scope, t) {
		message := "ginlimit: a tier that no table names gets the fallback's limits"
		if scope != "" {
			message = "ginlimit: a tier that the table of a scope does not name gets its fallback's limits"
		}
		slog.WarnContext(ctx, message,
			"scope", scope, "tier", shown(t), "fallback", fallback, "tiers", table.tiers.Tiers())
	}
	return fallback, t != ""
}

// warnOfFallbacks logs which tiers of the first layer the table of a further scope does not name. They get
// the fallback's limits there, which may be far below what their users pay for.
func warnOfFallbacks(layers []plan.Layer) {
	for _, scope := range layers[1:] {
		named := scope.Tiers.Tiers()
		missing := slices.DeleteFunc(layers[0].Tiers.Tiers(), func(t tiers.Tier) bool {
			return slices.Contains(named, t)
		})
		if len(missing) > 0 {
			slog.Warn("ginlimit: tiers that the table of a scope does not name get its fallback's limits",
				"scope", scope.Names.Scope, "tiers", missing, "fallback", scope.Tiers.Fallback())
		}
	}
}

// seenTiers are the unknown tiers that were warned about. The zero value is empty.
type seenTiers struct {
	mu   sync.RWMutex
	seen map[seenTier]bool
}

type seenTier struct {
	scope string
	tier  tiers.Tier
}

// maxSeenTiers bounds the names kept, each of at most maxShownTier bytes: a resolver may return what a client
// sent.
const (
	maxSeenTiers = 100
	maxShownTier = 64
)

// add reports whether t is new in the scope and there is room for it.
func (s *seenTiers) add(scope string, t tiers.Tier) bool {
	if len(t) > maxShownTier {
		t = t[:maxShownTier]
	}
	key := seenTier{scope, t}
	s.mu.RLock()
	old := s.seen[key] || len(s.seen) >= maxSeenTiers
	s.mu.RUnlock()
	if old {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[key] || len(s.seen) >= maxSeenTiers {
		return false
	}
	if s.seen == nil {
		s.seen = map[seenTier]bool{}
	}
	key.tier = tiers.Tier(strings.Clone(string(t)))
	s.seen[key] = true
	return true
}

// shown is a tier's name in quotes, shortened, with every character visible.
func shown(t tiers.Tier) string {
	if len(t) > maxShownTier {
		t = t[:maxShownTier] + "…"
	}
	return strconv.QuoteToASCII(string(t))
}
