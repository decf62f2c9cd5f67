package redisclient

import (
	"cmp"
	"errors"
	"slices"
	"sync"
)

// kind is what a finding is about; the next checks depend on it.
type kind int

const (
	setting       kind = iota // the limiter runs, but will do something that nobody wants
	unusable                  // no more checks of the server are possible
	unrunnable                // the scripts cannot be run
	knownCluster              // the server says that it belongs to a Cluster, and the client does not know it
	hiddenCluster             // the server does not say so, but refuses two keys of different slots
)

// finding is one thing that is wrong.
type finding struct {
	kind kind
	node string // which of several; "" if there is only one
	text string // one line
}

func (f finding) Error() string {
	if f.node == "" {
		return "redisclient: " + f.text
	}
	return "redisclient: " + f.node + ": " + f.text
}

// report gathers findings. It is safe for concurrent use.
type report struct {
	mu       sync.Mutex
	findings []finding
}

func (r *report) add(found ...finding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.findings = append(r.findings, found...)
}

func hasKind(findings []finding, k kind) bool {
	return slices.ContainsFunc(findings, func(f finding) bool { return f.kind == k })
}

// err is a line for each finding, or nil.
func (r *report) err() error {
	slices.SortFunc(r.findings, func(a, b finding) int { return cmp.Compare(a.Error(), b.Error()) })
	all := make([]error, len(r.findings))
	for i, f := range r.findings {
		all[i] = f
	}
	return errors.Join(all...)
}
