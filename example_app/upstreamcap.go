package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/tiers"
)

// largestCap is what a cap is at most. No provider's comes near it.
const largestCap = 1 << 40

// upstreamCap is what the provider allows for its key, and each tier's share of it; nil where nothing is set.
// Its name is the provider's host, so that several providers can share a Redis.
func upstreamCap(get func(string) string, cfg config) (*ginlimit.Upstream, error) {
	upstream := &ginlimit.Upstream{Name: "built-in"}
	if cfg.upstreamURL != nil {
		upstream.Name = cfg.upstreamURL.Host
	}
	for _, limit := range []struct {
		name   string
		number *int
	}{
		{"UPSTREAM_PER_MINUTE", &upstream.PerMinute},
		{"UPSTREAM_TOKENS_PER_MINUTE", &upstream.TokensPerMinute},
		{"UPSTREAM_CONCURRENT", &upstream.Concurrent},
	} {
		text := get(limit.name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > largestCap {
			return nil, fmt.Errorf("%s %q: want a whole number, from 1 to %d", limit.name, text, largestCap)
		}
		*limit.number = n
	}
	capped := max(upstream.PerMinute, upstream.TokensPerMinute, upstream.Concurrent) > 0
	shares := get("UPSTREAM_SHARES")
	switch {
	case shares == "" && !capped:
		return nil, nil
	case shares == "":
		return upstream, nil
	case !capped:
		return nil, errors.New("UPSTREAM_SHARES: is of no cap; set UPSTREAM_PER_MINUTE, " +
			"UPSTREAM_TOKENS_PER_MINUTE or UPSTREAM_CONCURRENT")
	}
	var err error
	if upstream.Share, err = parseShares(shares, cfg.tiers.Store()); err != nil {
		return nil, fmt.Errorf("UPSTREAM_SHARES: %w", err)
	}
	return upstream, nil
}

// parseShares reads a list of tier=share.
func parseShares(list string, table *tiers.Store) (map[tiers.Tier]float64, error) {
	shares := map[tiers.Tier]float64{}
	for i, entry := range strings.Split(list, ",") {
		name, text, found := strings.Cut(strings.TrimSpace(entry), "=")
		tier := tiers.Tier(name)
		if !found {
			return nil, fmt.Errorf("entry %d is not tier=share, such as free=0.7", i+1)
		}
		if known := table.Tiers(); !slices.Contains(known, tier) {
			return nil, fmt.Errorf("entry %d: unknown tier %q, want one of %q", i+1, name, known)
		}
		if _, again := shares[tier]; again {
			return nil, fmt.Errorf("entry %d repeats tier %q", i+1, name)
		}
		share, err := strconv.ParseFloat(text, 64)
		if err != nil || !(share > 0 && share <= 1) {
			return nil, fmt.Errorf("entry %d: share %q is not above 0 and at most 1", i+1, text)
		}
		shares[tier] = share
	}
	return shares, nil
}

// capsTokens reports whether the tokens of all callers are counted, of those without such a budget, too.
func capsTokens(upstream *ginlimit.Upstream) bool {
	return upstream != nil && upstream.TokensPerMinute > 0
}
