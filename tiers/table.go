package tiers

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// table is the mapping of tiers in a file. Like [Limits] it reads its entries itself: the decoder's own
// errors would not name the tier, and a node that is decoded on its own forgets KnownFields.
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

// UnmarshalYAML reads the budgets of one tier as strictly as [Load] does. It does not check them against the
// rules of [Limits]; [NewStore] does.
func (l *Limits) UnmarshalYAML(n *yaml.Node) error {
	fields := reflect.ValueOf(l).Elem()
	return entries(n, "want a mapping of limits", func(key, value *yaml.Node) error {
		var names []string
		for field, into := range fields.Fields() {
			if fileName(field) == key.Value {
				return (*count)(into.Addr().Interface().(*int)).UnmarshalYAML(value)
			}
			names = append(names, fileName(field))
		}
		return problemAt(key, "unknown field; want %s", strings.Join(names, " or "))
	})
}

// entries calls visit for each entry of a mapping, whose keys have to be distinct strings, up to the first
// error.
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

// count is a budget of whole units in a file.
type count int

// UnmarshalYAML accepts the one spelling of a whole number that nobody can read as another: 010 and 5e3 are
// not it.
func (c *count) UnmarshalYAML(n *yaml.Node) error {
	written := n.Kind == yaml.ScalarNode && n.Style == 0 // not quoted
	i, err := strconv.Atoi(n.Value)
	switch {
	case written && errors.Is(err, strconv.ErrRange):
		return problemAt(n, "%s is out of range", showNode(n))
	case !written || strconv.Itoa(i) != n.Value:
		return problemAt(n, "want a whole number in decimal digits, got %s", showNode(n))
	}
	*c = count(i)
	return nil
}
