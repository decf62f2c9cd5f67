package main

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/gin-tiers/ratelimit/tiers"
)

// demoAPIKeys stand in for API_KEYS on a developer's machine. Everybody knows them.
const demoAPIKeys = "sk-free-demo=user_free:free,sk-pro-demo=user_pro:pro," +
	"sk-enterprise-demo=user_enterprise:enterprise"

// caller is the owner of an API key.
type caller struct {
	user string
	tier tiers.Tier
}

// callers finds the owner of an API key by the key's SHA-256. So no key stays in memory, and how
// long a look-up takes says nothing about the keys.
type callers map[[sha256.Size]byte]caller

// apiKeyEntry is key=user:tier. A key is what RFC 6750 lets a bearer token be, "=" included: the
// last one ends it.
var apiKeyEntry = regexp.MustCompile(`^([\w.~+/=-]+)=([^\s=]+):([^\s=:]+)$`)

// parseAPIKeys reads a list of key=user:tier. Errors name an entry by its position, since a part of
// it is a secret.
func parseAPIKeys(list string, table *tiers.Store) (callers, error) {
	known := table.Tiers()
	found := callers{}
	for i, entry := range strings.Split(list, ",") {
		part := apiKeyEntry.FindStringSubmatch(strings.TrimSpace(entry))
		if part == nil {
			return nil, fmt.Errorf("entry %d is not key=user:tier", i+1)
		}
		key, owner := sha256.Sum256([]byte(part[1])), caller{part[2], tiers.Tier(part[3])}
		if !slices.Contains(known, owner.tier) {
			return nil, fmt.Errorf("entry %d: unknown tier%s, want one of %q", i+1, shownTier(part[3]), known)
		}
		if _, again := found[key]; again {
			return nil, fmt.Errorf("entry %d repeats the key of an entry before it", i+1)
		}
		found[key] = owner
	}
	return found, nil
}

// shownTier repeats a tier in an error if it is a word. What is not may be a key in the wrong place.
func shownTier(tier string) string {
	if regexp.MustCompile(`^[A-Za-z]{1,20}$`).MatchString(tier) {
		return fmt.Sprintf(" %q", tier)
	}
	return ""
}

// demoCallers returns the owners of the demo keys.
func demoCallers() callers {
	demo, err := parseAPIKeys(demoAPIKeys, tiers.Default())
	if err != nil {
		panic(err) // of a constant
	}
	return demo
}

// demoKey is a demo key and its tier, for the page.
type demoKey struct {
	Tier tiers.Tier `json:"tier"`
	Key  string     `json:"key"`
}

// demoKeys are the demo keys that are among the callers, in the order of their list.
func demoKeys(cs callers) []demoKey {
	keys := []demoKey{}
	for entry := range strings.SplitSeq(demoAPIKeys, ",") {
		key := apiKeyEntry.FindStringSubmatch(entry)[1]
		if owner, ok := cs[sha256.Sum256([]byte(key))]; ok {
			keys = append(keys, demoKey{owner.tier, key})
		}
	}
	return keys
}

// within returns those whose tier is in the table, and the tiers of the others, sorted, one for each.
func (cs callers) within(table *tiers.Store) (inside callers, outside []tiers.Tier) {
	known := table.Tiers()
	inside = maps.Clone(cs)
	for key, owner := range cs {
		if !slices.Contains(known, owner.tier) {
			delete(inside, key)
			outside = append(outside, owner.tier)
		}
	}
	slices.Sort(outside)
	return inside, outside
}

// share reports whether a key is in both.
func (cs callers) share(other callers) bool {
	for key := range cs {
		if _, ok := other[key]; ok {
			return true
		}
	}
	return false
}
