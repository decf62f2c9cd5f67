package ginlimit_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/gin-tiers/ratelimit/luascripts"
)

// audit repeats every call, in the order in which Redis ran them, on lists of requests.
type audit struct {
	t *testing.T

	mu       sync.Mutex
	next     int64 // number of the call that comes next
	pending  map[int64]audited
	logs     map[string]*requests
	admitted [len(families)]int64
}

func newAudit(t *testing.T) *audit {
	return &audit{t: t, next: 1, pending: map[int64]audited{}, logs: map[string]*requests{}}
}

// requests are what was admitted under one key.
type requests struct {
	window  int64           // milliseconds
	entries []entry         // in the order of admission
	cleared map[string]bool // members that a reset took out
}

type entry struct {
	at     int64 // Unix milliseconds
	member string
}

// live are the requests in (now-window, now]. The server's clock never goes back here.
func (r *requests) live(now int64) []entry {
	for i, e := range r.entries {
		if e.at > now-r.window {
			return r.entries[i:]
		}
	}
	return nil
}

func (r *requests) index(member string) int {
	return slices.IndexFunc(r.entries, func(e entry) bool { return e.member == member })
}

func (a *audit) add(c audited) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pending[c.number] = c
	for !a.t.Failed() {
		c, ok := a.pending[a.next]
		if !ok {
			return
		}
		delete(a.pending, a.next)
		a.next++
		a.take(c)
	}
}

func (a *audit) take(c audited) {
	if c.reply == nil {
		return
	}
	switch c.sha {
	case luascripts.SlidingWindow.Hash():
		windows := []budget{{number(c.args[1]), number(c.args[2])}}
		for i := 5; i < len(c.args); i += 3 {
			windows = append(windows, budget{number(c.args[i]), number(c.args[i+1])})
		}
		member := c.args[3].(string)
		if now, ok := a.explain(c, func(now int64) []int64 { return a.decide(c, windows, member, now) }); ok {
			a.admit(c, member, now)
		}
	case luascripts.PeekScript.Hash():
		var windows []budget
		for i := 1; i < len(c.args); i += 3 {
			windows = append(windows, budget{number(c.args[i+1]), number(c.args[i+2])})
		}
		a.explain(c, func(now int64) (want []int64) {
			for i, key := range c.keys {
				want = append(want, a.log(key, windows[i]).decide(windows[i], now)...)
			}
			return want
		})
	case luascripts.FinishScript.Hash(): // which gives back here
		held, member := int64(0), c.args[1].(string)
		if first := a.logs[c.keys[0]]; first != nil && first.index(member) >= 0 {
			held = 1
		}
		for _, key := range c.keys {
			log := a.logs[key]
			if log == nil {
				continue
			}
			if i := log.index(member); i >= 0 {
				log.entries = slices.Delete(log.entries, i, i+1)
			} else if !log.cleared[member] {
				continue // given back before
			}
			delete(log.cleared, member)
			a.admitted[family(key)]--
		}
		a.explain(c, func(int64) []int64 { return []int64{held} })
	case luascripts.ResetScript.Hash():
		for _, key := range c.keys {
			if log := a.logs[key]; log != nil {
				for _, e := range log.entries {
					log.cleared[e.member] = true
				}
				log.entries = nil
			}
		}
	default:
		a.t.Errorf("unknown script %s", c.sha)
	}
}

type budget struct{ window, limit int64 }

// log returns the list of a key.
func (a *audit) log(key string, b budget) *requests {
	log := a.logs[key]
	if log == nil {
		log = &requests{window: b.window, cleared: map[string]bool{}}
		a.logs[key] = log
	}
	return log
}

// explain finds the millisecond, of the one or two in which the script may have run, that gives the
// reply which it gave.
func (a *audit) explain(c audited, want func(now int64) []int64) (now int64, ok bool) {
	got, _ := c.reply.([]any)
	if n, ok := c.reply.(int64); ok {
		got = []any{n}
	}
	for now := c.from; now <= c.until; now++ {
		if slices.EqualFunc(got, want(now), func(got any, want int64) bool { return got == want }) {
			return now, true
		}
	}
	logs := ""
	for _, key := range c.keys {
		logs += fmt.Sprintf("\n%s holds %v", key, a.logs[key])
	}
	a.t.Errorf("call %d at %d to %d, %v %v: reply %v, want %v%s", c.number, c.from, c.until, c.keys, c.args, got,
		want(c.until), logs)
	return 0, false
}

// decide is the reply to a request at now, or nil if the scores show that it ran at another time.
func (a *audit) decide(c audited, windows []budget, member string, now int64) (want []int64) {
	for i, key := range c.keys {
		log := a.log(key, windows[i])
		reply := log.decide(windows[i], now)
		before := slices.IndexFunc(log.live(now), func(e entry) bool { return e.member == member })
		if before >= 0 {
			reply = []int64{1, reply[1], 0}
		}
		want = append(want, reply...)
		if reply[0] == 0 {
			return want
		}
	}
	for i, key := range c.keys {
		log := a.log(key, windows[i])
		before := slices.IndexFunc(log.live(now), func(e entry) bool { return e.member == member })
		switch {
		case before >= 0 && log.live(now)[before].at != c.scores[i], before < 0 && now != c.scores[i]:
			return nil
		case before < 0:
			want[3*i+1]++
		}
	}
	return want
}

// decide is the reply to a call that is not in the list.
func (r *requests) decide(b budget, now int64) []int64 {
	live := r.live(now)
	count := int64(len(live))
	switch {
	case count < b.limit:
		return []int64{1, count, 0}
	case b.limit <= 0:
		return []int64{0, count, b.window}
	}
	return []int64{0, count, live[count-b.limit].at + b.window - now}
}

// admit adds the request of an explained call to the lists.
func (a *audit) admit(c audited, member string, now int64) {
	reply := c.reply.([]any)
	rejected := reply[len(reply)-3] == int64(0)
	for i, key := range c.keys {
		log := a.logs[key]
		if log == nil { // behind the window that rejected
			return
		}
		log.entries = slices.Clone(log.live(now))
		if !rejected && log.index(member) < 0 {
			log.entries = append(log.entries, entry{c.scores[i], member})
			if !log.cleared[member] { // or it takes again what a reset took from it
				a.admitted[family(key)]++
			}
			delete(log.cleared, member)
		}
	}
}

// forget drops the lists whose keys have expired by now, or will before the next look.
func (a *audit) forget(now int64) {
	a.logs = maps.Collect(func(yield func(string, *requests) bool) {
		for key, log := range a.logs {
			clear(log.cleared)
			if len(log.live(now-2000)) > 0 && !yield(key, log) {
				return
			}
		}
	})
}

func number(arg any) int64 {
	n, _ := strconv.ParseInt(fmt.Sprint(arg), 10, 64)
	return n
}
