package tiers

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	// maxProblems bounds how many problems an error lists, whatever the size of the table.
	maxProblems = 8
	// maxShown bounds how many bytes of a name or value an error repeats: one of them may fill the whole file.
	maxShown = 80
	// maxLine bounds what an error repeats of the YAML parser's messages.
	maxLine = 300
)

// problem is an error at a place in a tier file.
type problem struct {
	line int
	path string // "free.per_day", or ""; see in
	text string
}

func (p *problem) Error() string {
	if p.path == "" {
		return fmt.Sprintf("line %d: %s", p.line, p.text)
	}
	return fmt.Sprintf("line %d: %s: %s", p.line, p.path, p.text)
}

// problemAt returns the problem of a node.
func problemAt(n *yaml.Node, format string, args ...any) error {
	return &problem{line: n.Line, text: fmt.Sprintf(format, args...)}
}

// in adds the key of a value to the value's problem. It returns other errors, and nil, unchanged.
func in(key string, err error) error {
	p, ok := errors.AsType[*problem](err)
	switch {
	case !ok:
		return err
	case p.path == "":
		p.path = show(key)
	default:
		p.path = show(key) + "." + p.path
	}
	return p
}

// joined returns one error, on one line, for one or more problems.
func joined(problems []string) error {
	if more := len(problems) - maxProblems; more > 0 {
		problems = append(problems[:maxProblems:maxProblems], fmt.Sprintf("and %d more", more))
	}
	return errors.New("tiers: " + strings.Join(problems, "; "))
}

// show returns s for an error: as it is if that is readable, quoted otherwise, and never long.
func show(s string) string {
	quoted := quote(s)
	if bare := quoted[1 : len(quoted)-1]; bare != "" && bare == strings.TrimSpace(clip(s, maxShown)) {
		return bare
	}
	return quoted
}

// showNode returns the value of n for an error: a scalar as it is written, a collection by its kind.
func showNode(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Style != 0:
		return quote(n.Value)
	case n.Value == "":
		return "nothing"
	}
	return show(n.Value)
}

// quote returns s in Go's quotes, shortened. Invisible characters are escaped, and a space at an end is
// visible.
func quote(s string) string {
	if strings.ContainsFunc(s, hidden) {
		return strconv.QuoteToASCII(clip(s, maxShown))
	}
	return strconv.Quote(clip(s, maxShown))
}

// oneLine returns text, which may quote the file, as one line with every character visible.
func oneLine(text string) string {
	var b strings.Builder
	for _, r := range clip(text, maxLine) {
		if hidden(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// clip shortens s to about limit bytes, without half a character at its end.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}
