package tiers

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// maxFileSize is far above any real table, and low enough to read and parse at once.
const maxFileSize = 1 << 20

// Load reads a tier file, which the package comment describes, up to its end or to the first byte above 1 MiB. The error
// of a failing reader is wrapped.
func Load(r io.Reader) (*Store, error) {
	if r == nil {
		return nil, errors.New("tiers: nil reader")
	}
	data, err := read(r)
	if err != nil {
		return nil, err
	}
	return parse(data)
}

// LoadFile reads the tier file at path as [Load] does. An error names the path; that of the operating system is wrapped,
// so that errors.Is(err, fs.ErrNotExist) works.
func LoadFile(path string) (*Store, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("tiers: %w", err)
	}
	defer f.Close()
	data, err := read(f)
	if err != nil {
		return nil, err // names the path already
	}
	s, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%w (in %s)", err, path)
	}
	return s, nil
}

// read returns at most one byte more than a tier file may have: enough for parse to refuse it.
func read(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFileSize+1))
	if err != nil {
		return nil, fmt.Errorf("tiers: %w", err)
	}
	return data, nil
}

// parse walks the nodes of the document rather than have yaml.v3 fill a struct: yaml.v3 would take "5" and 1_000 for
// numbers, expand aliases, and report Go types.
func parse(data []byte) (*Store, error) {
	root, err := document(data)
	if err != nil {
		return nil, err
	}
	entries, err := pairs(root, "", "want fields fallback and tiers")
	if err != nil {
		return nil, err
	}
	var (
		fallback = Free
		table    map[Tier]Limits
	)
	for _, p := range entries {
		switch p.name {
		case "fallback":
			fallback, err = decodeFallback(p)
		case "tiers":
			table, err = decodeTable(p)
		default:
			err = p.problem("unknown field; want fallback or tiers")
		}
		if err != nil {
			return nil, err
		}
	}
	if table == nil {
		return nil, problemAt(root.Line, "tiers: missing field")
	}
	return NewStore(fallback, table)
}

func decodeFallback(p pair) (Tier, error) {
	if p.value.Tag != "!!str" {
		return "", p.problem("want a string, got %s", showNode(p.value))
	}
	return Tier(p.value.Value), nil
}

func decodeTable(p pair) (map[Tier]Limits, error) {
	entries, err := pairs(p.value, "", "tiers: want a mapping from tiers to limits")
	if err != nil {
		return nil, err
	}
	table := make(map[Tier]Limits, len(entries))
	for _, tier := range entries {
		limits, err := decodeLimits(tier)
		if err != nil {
			return nil, err
		}
		table[Tier(tier.name)] = limits
	}
	return table, nil
}

// decodeLimits asks Limits for its fields, so that a further budget needs no code here.
func decodeLimits(tier pair) (Limits, error) {
	entries, err := pairs(tier.value, tier.path+".", tier.path+": want a mapping of limits")
	if err != nil {
		return Limits{}, err
	}
	var (
		limits Limits
		names  []string
	)
	for field := range reflect.TypeFor[Limits]().Fields() {
		names = append(names, fileName(field))
	}
	for _, p := range entries {
		if !slices.Contains(names, p.name) {
			return Limits{}, p.problem("unknown field; want %s", strings.Join(names, " or "))
		}
	}
	for field, value := range reflect.ValueOf(&limits).Elem().Fields() {
		name := fileName(field)
		at := slices.IndexFunc(entries, func(p pair) bool { return p.name == name })
		switch {
		case at >= 0:
			n, err := decodeNumber(entries[at])
			if err != nil {
				return Limits{}, err
			}
			value.SetInt(int64(n))
		case !optional(field):
			return Limits{}, problemAt(tier.line, "%s.%s: missing field", tier.path, name)
		}
	}
	return limits, nil
}

// decodeNumber accepts the one spelling of a whole number that nobody can read as another: 010 and 5e3 are not it.
func decodeNumber(p pair) (int, error) {
	written := p.value.Style == 0 // not quoted, nor a collection in brackets
	n, err := strconv.Atoi(p.value.Value)
	switch {
	case written && errors.Is(err, strconv.ErrRange):
		return 0, p.problem("%s is out of range", showNode(p.value))
	case !written || strconv.Itoa(n) != p.value.Value:
		return 0, p.problem("want a whole number in decimal digits, got %s", showNode(p.value))
	}
	return n, nil
}
