package tiers

import (
	"fmt"
	"maps"
	"slices"
)

// Store is a table of tiers. It never changes, so it is safe for concurrent use. Make one with [NewStore],
// [Load], [LoadFile] or [Default]; the zero value has no tier and admits nothing.
type Store struct {
	fallback Tier
	table    map[Tier]Limits
	users    Users // its lists are sorted
}

// Default returns the built-in table: free 5 requests a minute and 100 a day, pro 60 and 5,000, enterprise
// 600 and 100,000. The fallback is free.
func Default() *Store {
	return &Store{fallback: Free, table: map[Tier]Limits{
		Free:       {PerMinute: 5, PerDay: 100},
		Pro:        {PerMinute: 60, PerDay: 5_000},
		Enterprise: {PerMinute: 600, PerDay: 100_000},
	}}
}

// NewStore returns a Store with a copy of table. It fails if a tier's limits break the rules of [Limits], if
// fallback is not in the table, or if a tier's name
//
//   - is empty, is not UTF-8, or begins or ends with a space;
//   - has an invisible character (zero width, bidirectional control, byte order mark, variation selector,
//     tag, filler, control, private use, not assigned in Go's Unicode tables) or a space other than U+0020;
//   - has a combining mark with nothing before it to combine with.
//
// The error lists the problems sorted by tier. It names an invisible character by its code point.
func NewStore(fallback Tier, table map[Tier]Limits) (*Store, error) {
	s := &Store{fallback: fallback, table: maps.Clone(table)}
	if problems := s.problems(); len(problems) > 0 {
		return nil, joined(problems)
	}
	return s, nil
}

// Lookup returns the limits of t, or those of the fallback if t is not in the table. It allocates nothing.
func (s *Store) Lookup(t Tier) Limits {
	if l, ok := s.table[t]; ok {
		return l
	}
	return s.table[s.fallback]
}

// Tiers returns the names in the table, sorted. The slice is the caller's own.
func (s *Store) Tiers() []Tier { return slices.Sorted(maps.Keys(s.table)) }

// Fallback returns the tier whose limits an unknown tier gets.
func (s *Store) Fallback() Tier { return s.fallback }

// problems lists what is wrong with the table, tier by tier, and then with the fallback.
func (s *Store) problems() []string {
	var problems []string
	for _, t := range s.Tiers() {
		if rule := brokenRule(string(t)); rule != "" {
			problems = append(problems, fmt.Sprintf("tier name %+q %s", clip(string(t), maxShown), rule))
		}
		for _, p := range s.table[t].problems() {
			problems = append(problems, show(string(t))+"."+p)
		}
	}
	_, known := s.table[s.fallback]
	switch {
	case len(s.table) == 0:
		problems = append(problems, "the table is empty")
	case s.fallback == "":
		problems = append(problems, "fallback is empty")
	case brokenRule(string(s.fallback)) != "":
		shown := clip(string(s.fallback), maxShown)
		problems = append(problems, fmt.Sprintf("fallback %+q %s", shown, brokenRule(string(s.fallback))))
	case !known:
		problems = append(problems, fmt.Sprintf("fallback: %s is not in the table", show(string(s.fallback))))
	}
	return problems
}
