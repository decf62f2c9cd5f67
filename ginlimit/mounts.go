package ginlimit

import (
	"strconv"
	"sync"
)

// mounts remembers of every scope of a limiter whether the middlewares on it were given a tier table.
type mounts struct {
	mu        sync.Mutex
	withTable map[string]bool
}

// add panics where one middleware on a scope has a table and another one has not: the second would
// decide by the default table, which nobody wrote down for it.
func (m *mounts) add(scope string, hasTable bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, known := m.withTable[scope]
	switch {
	case !known:
		if m.withTable == nil {
			m.withTable = map[string]bool{}
		}
		m.withTable[scope] = hasTable
	case before != hasTable:
		of := "the limiter"
		if scope != "" {
			of = "the limiter's scope " + strconv.Quote(scope)
		}
		panic("ginlimit: New: of two middlewares on " + of + " one has a tier table and one has not, " +
			"so it would use tiers.Default(): add WithTiers to both")
	}
}
