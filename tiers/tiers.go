package tiers

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/go-playground/validator/v10"
)

// Tier names a class of users that share the same limits. Letters of any script, digits, punctuation, symbols
// and plain spaces between them make a name. A character that does not show, or that looks like a plain space
// and is another, does not: see [NewStore]. Names are compared byte by byte. "Pro" is not "pro", and nothing
// is normalised: é as one character (Unicode's form NFC) and é as e with a combining accent (NFD) are two
// tiers. Write names in one form everywhere.
type Tier string

// The tiers of [Default]. A table may name others.
const (
	Free       Tier = "free"
	Pro        Tier = "pro"
	Enterprise Tier = "enterprise"
)

// Limits are the budgets of one tier. The zero value is not valid in a table: a tier without budgets is a
// mistake.
//
// A further budget is one more int field. It becomes a field of the tier file under its yaml name, required
// unless that tag says omitempty; its validate tag may use min and gtefield.
type Limits struct {
	// PerMinute is the number of requests in any 60 seconds, at least 1.
	PerMinute int `yaml:"per_minute" json:"per_minute" validate:"min=1"`
	// PerDay is the number of requests in any 24 hours, at least PerMinute.
	PerDay int `yaml:"per_day" json:"per_day" validate:"gtefield=PerMinute"`
}

// Store is a table of tiers. It never changes, so it is safe for concurrent use. Build one with [NewStore],
// [Load], [LoadFile] or [Default]; the zero value knows no tier and grants nothing.
type Store struct {
	fallback Tier
	table    map[Tier]Limits
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
//   - has a character that does not show (zero width, bidirectional control, byte order mark, variation selector, tag,
//     filler, control, private use, not assigned in Go's Unicode tables) or a space other than U+0020;
//   - has a combining mark with nothing before it to combine with.
//
// The error lists the problems sorted by tier. It names a character that does not show by its code point.
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

// problems says what is wrong with the table, tier by tier, and then with the fallback.
func (s *Store) problems() []string {
	var problems []string
	for _, t := range s.Tiers() {
		if rule := t.brokenRule(); rule != "" {
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
	case s.fallback.brokenRule() != "":
		problems = append(problems, fmt.Sprintf("fallback %+q %s", clip(string(s.fallback), maxShown), s.fallback.brokenRule()))
	case !known:
		problems = append(problems, fmt.Sprintf("fallback: %s is not in the table", show(string(s.fallback))))
	}
	return problems
}

// problems says which rules l breaks, in the order of its fields.
func (l Limits) problems() []string {
	var problems []string
	// Struct fails in no other way when it is given a struct.
	broken, _ := errors.AsType[validator.ValidationErrors](validate().Struct(l))
	for _, field := range broken {
		least := field.Param()
		if field.Tag() == "gtefield" {
			least = l.describe(field.Param())
		}
		problems = append(problems, fmt.Sprintf("%s: %v is less than %s", field.Field(), field.Value(), least))
	}
	return problems
}

// describe returns the name in a file and the value of a Go field: "per_minute 5".
func (l Limits) describe(goName string) string {
	field, _ := reflect.TypeFor[Limits]().FieldByName(goName)
	return fmt.Sprintf("%s %v", fileName(field), reflect.ValueOf(l).FieldByIndex(field.Index))
}

// fileName returns how a tier file spells a field of Limits.
func fileName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
	return name
}

// validate returns the validator, made once: it caches what it learns about a type.
var validate = sync.OnceValue(func() *validator.Validate {
	v := validator.New(validator.WithRequiredStructEnabled())
	v.RegisterTagNameFunc(fileName)
	return v
})
