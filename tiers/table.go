package tiers

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// table is the mapping of tiers in a file. Like [Limits] it reads its entries itself: the decoder's errors
// would not name the tier, and a node that is decoded alone ignores KnownFields.
type table map[Tier]Limits

func (t *table) UnmarshalYAML(n *yaml.Node) error {
	*t = make(table)
	return entries(n, "want a mapping from tiers to limits", func(tier, value *yaml.Node) error {
		var l Limits
		err := l.UnmarshalYAML(value)
		(*t)[Tier(tier.Value)] = l
		return err
	})
}

// UnmarshalYAML reads the budgets of one tier as strictly as [Load]. It checks each number alone. [NewStore]
// checks the rules between numbers, and that the required ones are there.
func (l *Limits) UnmarshalYAML(n *yaml.Node) error { return readFields(n, reflect.ValueOf(l).Elem()) }

// readFields reads a mapping into the fields of a struct, including those of embedded structs.
func readFields(n *yaml.Node, into reflect.Value) error {
	return entries(n, "want a mapping of limits", func(key, value *yaml.Node) (err error) {
		var names []string
		for _, field := range reflect.VisibleFields(into.Type()) {
			switch {
			case field.Anonymous:
				continue
			case fileName(field) != key.Value:
				names = append(names, fileName(field))
				continue
			}
			switch read := into.FieldByIndex(field.Index).Addr().Interface().(type) {
			case *int:
				*read, err = limitAt(value, parseCount, math.MaxInt, "a whole number in decimal digits")
			case *Money:
				*read, err = limitAt(value, parseMoney, maxSum, wantMoney)
			case *time.Time:
				*read, err = timeAt(value)
			}
			return err
		}
		last := len(names) - 1
		return problemAt(key, "unknown field; want %s or %s", strings.Join(names[:last], ", "), names[last])
	})
}

// entries calls visit for each entry of a mapping, up to the first error. The keys must be distinct strings.
func entries(n *yaml.Node, want string, visit func(key, value *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return problemAt(n, "%s, got %s", want, showNode(n))
	}
	lines := make(map[string]int)
	for pair := range slices.Chunk(n.Content, 2) {
		key, value := pair[0], pair[1]
		if key.ShortTag() != "!!str" {
			return problemAt(key, "want a string as a key, got %s", showNode(key))
		}
		if line, again := lines[key.Value]; again {
			return in(key.Value, problemAt(key, "duplicate key; first on line %d", line))
		}
		lines[key.Value] = key.Line
		if err := in(key.Value, visit(key, value)); err != nil {
			return err
		}
	}
	return nil
}

// limitAt returns the number at n, read by parse, or Unlimited for that word. Only the word may be quoted,
// because in JSON it must be.
func limitAt[T int | Money](n *yaml.Node, parse func(string) (T, error), most T, want string) (T, error) {
	if n.Kind == yaml.ScalarNode && n.Value == "unlimited" {
		return Unlimited, nil
	}
	written := n.Kind == yaml.ScalarNode && n.Style == 0 // not quoted
	limit, err := parse(n.Value)
	switch {
	case written && errors.Is(err, strconv.ErrRange):
		return 0, problemAt(n, "%s is out of range; want at most %v or unlimited", showNode(n), most)
	case !written || err != nil:
		return 0, problemAt(n, "want %s or unlimited, got %s", want, showNode(n))
	case limit < 1:
		return 0, problemAt(n, "%s is less than %v; for no limit write unlimited", showNode(n), T(1))
	}
	return limit, nil
}

// parseCount returns the same errors as parseMoney. It accepts only one spelling of a whole number: not 010
// or 5e3.
func parseCount(text string) (int, error) {
	count, err := strconv.Atoi(text)
	if err == nil && strconv.Itoa(count) != text {
		err = strconv.ErrSyntax
	}
	return count, err
}
