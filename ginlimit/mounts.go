package ginlimit

import (
	"strconv"
	"sync"
)

// mounts remembers how the middlewares on each scope of a limiter were made.
type mounts struct {
	mu  sync.Mutex
	all map[string]mount // by scope
}

// mount is what all middlewares on a scope must have in common.
type mount struct {
	hasTable bool // a tier table was given
	bounded  bool // WithBoundedWindows
}

// add panics if two middlewares on a scope differ: the one without a table would decide by the default table,
// which nobody chose for it; if one has bounded windows, each would count for itself.
func (m *mounts) add(scope string, added mount) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, known := m.all[scope]
	of := "the limiter"
	if scope != "" {
		of = "the limiter's scope " + strconv.Quote(scope)
	}
	switch {
	case !known:
		if m.all == nil {
			m.all = map[string]mount{}
		}
		m.all[scope] = added
	case before.hasTable != added.hasTable:
		panic("ginlimit: New: of two middlewares on " + of + " one has a tier table and one has not, " +
			"so it would use tiers.Default(): add WithTiers to both")
	case before.bounded != added.bounded:
		panic("ginlimit: New: of two middlewares on " + of + " one has WithBoundedWindows and one has not, " +
			"so each would count for itself: add it to both")
	}
}

// bounded reports whether the middlewares on a scope keep bounded windows.
func (m *mounts) bounded(scope string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[scope].bounded
}
