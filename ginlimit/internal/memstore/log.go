package memstore

import (
	"cmp"
	"slices"
	"time"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
)

// requestLog is like the scripts' sorted set: entries by time, members distinct. A nil log is an empty one.
type requestLog struct {
	entries []logEntry // oldest first
	at      map[string]int64
	most    int // the most entries since the last shrink
}

type logEntry struct {
	at     int64 // Unix milliseconds
	member string
}

func newRequestLog() *requestLog { return &requestLog{at: make(map[string]int64, 1)} }

func (l *requestLog) len() int {
	if l == nil {
		return 0
	}
	return len(l.entries)
}

func (l *requestLog) holds(member string) bool {
	if l == nil {
		return false
	}
	_, ok := l.at[member]
	return ok
}

// expired counts the entries that have left the window at now; an entry exactly a window old has left.
func (l *requestLog) expired(now int64, window time.Duration) int {
	if l == nil {
		return 0
	}
	return l.search(now - window.Milliseconds() + 1)
}

// verdict decides on the entries from index first on, all of which are in the window.
func (l *requestLog) verdict(first int, now int64, b budget.Budget) budget.Verdict {
	used := l.len() - first
	if used < b.Limit {
		return budget.Verdict{Allowed: true, Used: used}
	}
	window := b.Window.Milliseconds()
	retry := window
	if b.Limit > 0 {
		retry = l.entries[first+used-b.Limit].at + window - now
	}
	retry = max(1, min(window, retry))
	return budget.Verdict{Used: used, RetryAfter: time.Duration(retry) * time.Millisecond}
}

// restampFrom sets the time of all entries in the future to now, if the entry at index first is one of them:
// the clock was ahead and went back. They leave one window after now, which is the wait of the rejected call.
func (l *requestLog) restampFrom(first int, now int64) {
	if first >= l.len() || l.entries[first].at <= now {
		return
	}
	for i := l.search(now + 1); i < l.len(); i++ {
		l.entries[i].at = now
		l.at[l.entries[i].member] = now
	}
}

// search returns the index of the first entry at or after at.
func (l *requestLog) search(at int64) int {
	i, _ := slices.BinarySearchFunc(l.entries, at, func(e logEntry, at int64) int {
		return cmp.Compare(e.at, at)
	})
	return i
}

func (l *requestLog) add(at int64, member string) {
	l.entries = slices.Insert(l.entries, l.search(at+1), logEntry{at, member})
	l.at[member] = at
	l.most = max(l.most, len(l.entries))
}

func (l *requestLog) remove(member string) {
	if !l.holds(member) {
		return
	}
	for i := l.search(l.at[member]); ; i++ {
		if l.entries[i].member == member {
			l.entries = slices.Delete(l.entries, i, i+1)
			break
		}
	}
	delete(l.at, member)
}

func (l *requestLog) trim(n int) {
	if n == 0 {
		return
	}
	for _, e := range l.entries[:n] {
		delete(l.at, e.member)
	}
	clear(l.entries[:n])
	l.entries = l.entries[n:]
	if l.most > 64 && l.len() < l.most/4 {
		l.shrink()
	}
}

// shrink frees the memory of entries that have left; slices and maps do not free it by themselves.
func (l *requestLog) shrink() {
	l.entries = slices.Clone(l.entries)
	l.at = make(map[string]int64, len(l.entries))
	for _, e := range l.entries {
		l.at[e.member] = e.at
	}
	l.most = len(l.entries)
}
