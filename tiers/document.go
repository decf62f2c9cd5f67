package tiers

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// document returns the root node of the one YAML document in data. Nothing is expanded or converted.
func document(data []byte) (*yaml.Node, error) {
	text, err := harmless(data)
	if err != nil {
		return nil, err
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	doc, err := next(dec)
	if err != nil {
		return nil, err
	}
	switch second, err := next(dec); {
	case err != nil:
		return nil, err
	case second != nil:
		return nil, problemAt(second.Line, "second document; a tier file is one")
	case doc == nil || showNode(doc.Content[0]) == "nothing":
		return nil, errors.New("tiers: empty file")
	}
	root := doc.Content[0]
	if what := indirection(root); what != "" {
		return nil, problemAt(root.Line, "%s is not allowed", what)
	}
	return root, nil
}

// next returns the next document, or nil after the last. A panic of yaml.v3 on malformed input, of which its history has
// several, is to the operator one more file that cannot be read.
func next(dec *yaml.Decoder) (doc *yaml.Node, err error) {
	defer func() {
		if recover() != nil {
			doc, err = nil, errors.New("tiers: not YAML")
		}
	}()
	doc = new(yaml.Node)
	switch err := dec.Decode(doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, syntaxError(err)
	}
	return doc, nil
}

// syntaxError rewords an error of yaml.v3, which says "yaml: line 3: what" or, for the first line, "yaml: what".
func syntaxError(err error) error {
	what, line := strings.TrimPrefix(err.Error(), "yaml: "), 0
	if rest, ok := strings.CutPrefix(what, "line "); ok {
		number, text, _ := strings.Cut(rest, ": ")
		what = text
		line, _ = strconv.Atoi(number)
	}
	switch what {
	case "did not find expected <document start>", "did not find expected node content", "did not find expected key",
		"did not find expected '-' indicator", "did not find expected ',' or ']'", "did not find expected ',' or '}'":
		line++ // yaml.v3's parser, unlike its scanner, counts from 0
	}
	if line == 0 {
		return errors.New("tiers: " + clip(what))
	}
	return problemAt(line, "%s", clip(what))
}

// harmless returns data without what no tier file needs and what makes yaml.v3 slow, line by line so that its line numbers
// stay right. Within 1 MiB, %TAG directives cost it gigabytes and comments below deep nesting cost it 40 s: directives
// are refused, lines that are only a comment are emptied. (Within a string that spans lines, which no tier file needs
// either, such a line thereby becomes a line break; a tier name with one is refused.)
func harmless(data []byte) ([]byte, error) {
	if len(data) > maxFileSize {
		return nil, errors.New("tiers: file is larger than 1 MiB")
	}
	lines := bytes.Split(bytes.TrimPrefix(data, []byte("\ufeff")), []byte("\n"))
	for i, line := range lines {
		line = bytes.TrimSuffix(line, []byte("\r"))
		switch at := bytes.IndexFunc(line, forbidden); {
		case !utf8.Valid(line):
			return nil, problemAt(i+1, "not UTF-8")
		case at >= 0:
			r, _ := utf8.DecodeRune(line[at:])
			return nil, problemAt(i+1, "character %U is not allowed", r)
		case bytes.HasPrefix(line, []byte("%")):
			return nil, problemAt(i+1, "directives (%%) are not allowed")
		case bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("#")):
			line = nil
		case crowded(line):
			return nil, problemAt(i+1, "too many brackets")
		}
		lines[i] = line
	}
	return bytes.Join(lines, []byte("\n")), nil
}

// crowded reports brackets so close together that they nest or hold nothing. For the next 1 KiB of the line yaml.v3 takes
// each for the start of a key, and lets all that follows wait. The shortest tier, "a: {per_day: 1,per_minute: 1},", takes 30
// bytes for its bracket; a whole file in one line has a few more.
func crowded(line []byte) bool {
	for part := range slices.Chunk(line, 1<<10) {
		if brackets := bytes.Count(part, []byte("{")) + bytes.Count(part, []byte("[")); brackets > 8+len(part)/30 {
			return true
		}
	}
	return false
}

// forbidden reports control characters, and what yaml.v3 takes for a line break or skips although an editor shows neither.
func forbidden(r rune) bool {
	return unicode.IsControl(r) && r != '\t' || r == '\u2028' || r == '\u2029' || r == '\ufeff'
}

// pair is one entry of a mapping.
type pair struct {
	name  string // the key
	path  string // what errors call it: "free.per_day"
	line  int    // of the key
	value *yaml.Node
}

// pairs returns the entries of n in the order of the file. Their path is prefix and name. It fails unless n is a mapping, as
// want says, with distinct strings for keys and nothing that stands for something else.
func pairs(n *yaml.Node, prefix, want string) ([]pair, error) {
	if n.Kind != yaml.MappingNode {
		return nil, problemAt(n.Line, "%s, got %s", want, showNode(n))
	}
	var list []pair
	first := make(map[string]int) // line of each name
	for kv := range slices.Chunk(n.Content, 2) {
		key, value := kv[0], kv[1]
		p := pair{name: key.Value, path: prefix + show(key.Value), line: key.Line, value: value}
		switch line, again := first[p.name]; {
		case indirection(key) != "":
			return nil, problemAt(key.Line, "%s is not allowed", indirection(key))
		case key.Kind != yaml.ScalarNode || key.Tag != "!!str":
			return nil, problemAt(key.Line, "want a string as a key, got %s", showNode(key))
		case indirection(value) != "":
			return nil, p.problem("%s is not allowed", indirection(value))
		case again:
			return nil, p.problem("duplicate key; first on line %d", line)
		}
		first[p.name] = p.line
		list = append(list, p)
	}
	return list, nil
}

// problem makes the error for what is wrong with p.
func (p pair) problem(format string, args ...any) error {
	return problemAt(p.line, "%s: %s", p.path, fmt.Sprintf(format, args...))
}

// indirection names what makes n stand for something else than what is written there, or returns "".
func indirection(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.AliasNode:
		return "alias *" + show(n.Value)
	case n.Anchor != "":
		return "anchor &" + show(n.Anchor)
	case n.Style&yaml.TaggedStyle != 0:
		return "tag " + show(n.Tag)
	case n.Tag == "!!merge":
		return "merge key <<"
	}
	return ""
}
