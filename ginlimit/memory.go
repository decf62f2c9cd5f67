package ginlimit

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/gin-tiers/ratelimit/luascripts"
)

// Bounds of a memory limiter, about 160 MB in all. Beyond either, the key that was used longest ago
// is forgotten, and its user starts anew; a key in use is never forgotten for its own size.
const (
	MemoryKeys    = 100_000   // windows of users, about 450 bytes each; a user with a minute and a day has two
	MemoryEntries = 1_000_000 // admitted requests in all of them, about 130 bytes each
)

// memoryStore makes the decisions of the scripts on logs in this process. One mutex stands for
// Redis's single thread; what it guards takes about a microsecond.
type memoryStore struct {
	clock func() time.Time

	mu      sync.Mutex
	logs    *simplelru.LRU[string, *requestLog]
	entries int // in all logs
}

func newMemoryStore(clock func() time.Time) *memoryStore {
	if clock == nil {
		// Monotonic, so that a stepped wall clock neither admits too much nor locks anybody out.
		start := time.Now()
		clock = func() time.Time { return start.Add(time.Since(start)) }
	}
	s := &memoryStore{clock: clock}
	logs, err := simplelru.NewLRU(MemoryKeys, func(_ string, l *requestLog) { s.entries -= l.len() })
	if err != nil {
		panic("ginlimit: " + err.Error()) // a size below 1 is its only error
	}
	s.logs = logs
	return s
}

func (s *memoryStore) admit(_ context.Context, member string, keys []string, budgets []luascripts.Budget) ([]luascripts.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock().UnixMilli()

	replies := make([]luascripts.Reply, 0, len(keys))
	for i, key := range keys {
		log := s.trimmed(key, now, budgets[i])
		reply := log.reply(0, now, budgets[i])
		if !reply.Allowed && log.holds(member) {
			reply = luascripts.Reply{Allowed: true, Count: reply.Count}
		}
		replies = append(replies, reply)
		if !reply.Allowed {
			return replies, nil
		}
	}
	for i, key := range keys {
		log := s.trimmed(key, now, budgets[i])
		if log.holds(member) {
			continue
		}
		if log == nil {
			log = newRequestLog()
			s.logs.Add(key, log)
		}
		log.add(now, member)
		s.entries++
		replies[i].Count++
	}
	for s.entries > MemoryEntries && s.logs.Len() > len(keys) {
		s.logs.RemoveOldest()
	}
	return replies, nil
}

func (s *memoryStore) peek(_ context.Context, keys []string, budgets []luascripts.Budget) ([]luascripts.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock().UnixMilli()

	replies := make([]luascripts.Reply, len(keys))
	for i, key := range keys {
		log, _ := s.logs.Peek(key)
		replies[i] = log.reply(log.expired(now, budgets[i]), now, budgets[i])
	}
	return replies, nil
}

func (s *memoryStore) giveBack(_ context.Context, member string, keys []string, _ []luascripts.Budget) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		log, _ := s.logs.Peek(key)
		if !log.holds(member) {
			continue
		}
		log.remove(member)
		s.entries--
		if log.len() == 0 {
			s.logs.Remove(key)
		}
	}
	return nil
}

func (s *memoryStore) reset(_ context.Context, keys []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		s.logs.Remove(key)
	}
	return nil
}

// trimmed returns the log of key without its expired entries, nil where nothing is left.
func (s *memoryStore) trimmed(key string, now int64, b luascripts.Budget) *requestLog {
	log, ok := s.logs.Get(key)
	if !ok {
		return nil
	}
	expired := log.expired(now, b)
	log.trim(expired)
	s.entries -= expired
	if log.len() == 0 {
		s.logs.Remove(key)
		return nil
	}
	return log
}

// requestLog is what a sorted set is to the scripts: entries by time, members distinct. A nil log
// is an empty one.
type requestLog struct {
	entries []logEntry // oldest first
	at      map[string]int64
	room    int // the most entries since the last shrink
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

// expired counts the entries that are out of the window at now; one exactly a window old is out.
func (l *requestLog) expired(now int64, b luascripts.Budget) int {
	if l == nil {
		return 0
	}
	return l.search(now - b.Window().Milliseconds() + 1)
}

// reply decides on the entries from index first on, all of which are in the window.
func (l *requestLog) reply(first int, now int64, b luascripts.Budget) luascripts.Reply {
	count := l.len() - first
	if count < b.Limit() {
		return luascripts.Reply{Allowed: true, Count: count}
	}
	window := b.Window().Milliseconds()
	retry := window
	if b.Limit() > 0 {
		retry = l.entries[first+count-b.Limit()].at + window - now
	}
	retry = max(1, min(window, retry))
	return luascripts.Reply{Count: count, RetryAfter: time.Duration(retry) * time.Millisecond}
}

// search returns the index of the first entry at or after at.
func (l *requestLog) search(at int64) int {
	i, _ := slices.BinarySearchFunc(l.entries, at, func(e logEntry, at int64) int { return cmp.Compare(e.at, at) })
	return i
}

func (l *requestLog) add(at int64, member string) {
	l.entries = slices.Insert(l.entries, l.search(at+1), logEntry{at, member})
	l.at[member] = at
	l.room = max(l.room, len(l.entries))
}

func (l *requestLog) remove(member string) {
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
	if l.room > 64 && l.len() < l.room/4 {
		l.shrink()
	}
}

// shrink returns the room of entries that have left: neither a slice nor a map does by itself.
func (l *requestLog) shrink() {
	l.entries = slices.Clone(l.entries)
	l.at = make(map[string]int64, len(l.entries))
	for _, e := range l.entries {
		l.at[e.member] = e.at
	}
	l.room = len(l.entries)
}
