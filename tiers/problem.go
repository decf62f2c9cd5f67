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
	// maxShown bounds how many bytes of a name or value an error repeats: a file may hold one of a megabyte.
	maxShown = 80
)

// joined makes one error, on one line, of at least one problem.
func joined(problems []string) error {
	if more := len(problems) - maxProblems; more > 0 {
		problems = append(problems[:maxProblems:maxProblems], fmt.Sprintf("and %d more", more))
	}
	return errors.New("tiers: " + strings.Join(problems, "; "))
}

// problemAt makes the error for what is wrong at a line of the file.
func problemAt(line int, format string, args ...any) error {
	return fmt.Errorf("tiers: line %d: %s", line, fmt.Sprintf(format, args...))
}

// show returns s as an error repeats it: as it stands where that is readable, quoted where it is not, and never long.
func show(s string) string {
	quoted := quote(s)
	if bare := quoted[1 : len(quoted)-1]; bare != "" && bare == strings.TrimSpace(clip(s)) {
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

// quote returns s in Go's quotes, shortened: a character that does not show is escaped, a space at an end can be seen.
func quote(s string) string {
	if strings.ContainsFunc(s, hidden) {
		return strconv.QuoteToASCII(clip(s))
	}
	return strconv.Quote(clip(s))
}

// clip shortens s to about maxShown bytes, without half a character at its end.
func clip(s string) string {
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "") + "…"
}
