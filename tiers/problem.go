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
	// maxShown bounds how many bytes of a name or value an error repeats: a file may hold one that fills it.
	maxShown = 80
	// maxLine bounds what an error repeats of the YAML parser's messages.
	maxLine = 300
)

// problem is what is wrong at a place in a tier file.
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

// in adds the key of a value to the value's problem. It returns any other error, and nil, as it is.
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

// joined makes one error, on one line, of at least one problem.
func joined(problems []string) error {
	if more := len(problems) - maxProblems; more > 0 {
		problems = append(problems[:maxProblems:maxProblems], fmt.Sprintf("and %d more", more))
	}
	return errors.New("tiers: " + strings.Join(problems, "; "))
}

// show returns s as an error repeats it: as it stands where that is readable, quoted where it is not, and
// never long.
func show(s string) string {
	quoted := quote(s)
	if bare := quoted[1 : len(quoted)-1]; bare != "" && bare == strings.TrimSpace(clip(s, maxShown)) {
		return bare
	}
	return quoted
}

// showNode returns what stands at n: a scalar as it is written, a collection by its kind.
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

// quote returns s in Go's quotes, shortened. A character that does not show is escaped, a space at an end can
// be seen.
func quote(s string) string {
	if strings.ContainsFunc(s, hidden) {
		return strconv.QuoteToASCII(clip(s, maxShown))
	}
	return strconv.Quote(clip(s, maxShown))
}

// oneLine returns text, which may repeat what a file says, as one line that shows every character of it.
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
