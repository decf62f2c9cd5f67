package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gin-tiers/ratelimit/luascripts"
)

const (
	// maxGroupKeys bounds the keys of all decisions of a group. 32 keys take the server about 145 µs.
	maxGroupKeys = 32
	// maxFlights is how many script calls may be in progress before decisions wait.
	maxFlights = 4
	// late is how long a script call counts as in progress: after that its connection may hang.
	late = 10 * time.Millisecond
)

// groups lets decisions that arrive at the same time share a script call. A decision is sent at once, alone,
// unless maxFlights calls are in progress. Then decisions wait until one call returns, and go together. There
// is no timer, and no goroutine while no call is in progress.
//
// Each decision of a group has its own windows, its own all-or-none and its own reply. If the server answers
// a group with an error, each of its decisions is sent again, alone: an error of one must not affect the
// others, and a repeat counts once.
type groups struct {
	next runner
	late time.Duration // as the constant
	off  atomic.Bool   // since the server refused a group

	mu      sync.Mutex
	flights [maxFlights]flight
	latest  uint64 // id of the flight that began last
	waiting queue
	members sync.Pool // of *member

	sent [maxGroupKeys + 1]atomic.Uint64 // groups of so many decisions
}

// flight is a script call in progress. The zero value is none.
type flight struct {
	id    uint64
	began time.Time
}

// outcome is the result of a decision.
type outcome struct {
	reply any
	err   error
}

// errAlone says that a decision is to be sent alone.
var errAlone = errors.New("the decision is to be asked for alone")

// groupError is an error that the decisions of a group share. A breaker counts it once.
type groupError struct {
	error
	counted atomic.Bool
}

func (e *groupError) Unwrap() error { return e.error }

func newGroups(next runner) *groups {
	g := &groups{next: next, late: late}
	g.members.New = func() any { return &member{done: make(chan outcome, 1)} }
	return g
}

// run sends decisions in groups, and any other script as it is.
func (g *groups) run(ctx context.Context, script *redis.Script, keys []string, args []any) (any, error) {
	if script != luascripts.SlidingWindow || len(keys) > maxGroupKeys || g.off.Load() {
		return g.next.run(ctx, script, keys, args)
	}
	if err := over(ctx); err != nil {
		return nil, err
	}
	g.mu.Lock()
	id := g.start()
	if id != 0 && g.waiting.keys == 0 {
		g.mu.Unlock()
		defer g.landed(id)
		return g.next.run(ctx, script, keys, args)
	}
	m := g.members.Get().(*member)
	*m = member{ctx: ctx, keys: keys, args: args, done: m.done}
	g.waiting.add(m)
	var group []*member
	if id != 0 {
		group = g.waiting.take(nil)
	}
	g.mu.Unlock()
	if len(group) > 0 {
		go g.fly(id, group)
	}
	o := g.wait(m)
	if o.err == errAlone {
		return g.next.run(ctx, script, keys, args)
	}
	return o.reply, o.err
}

// start returns the id of a new flight, or 0 if enough are in progress.
func (g *groups) start() uint64 {
	now := time.Now()
	for i := range g.flights {
		if f := &g.flights[i]; f.id == 0 || now.Sub(f.began) > g.late {
			g.latest++
			*f = flight{g.latest, now}
			return f.id
		}
	}
	return 0
}

// again returns the members that a returned flight carries next. If there are none, or another flight has
// taken its place, the flight has ended.
func (g *groups) again(id uint64, room []*member) []*member {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.flights {
		if f := &g.flights[i]; f.id == id {
			group := g.waiting.take(room)
			if len(group) == 0 {
				*f = flight{}
			} else {
				f.began = time.Now()
			}
			return group
		}
	}
	return nil
}

// landed ends the flight of a decision that was sent alone, or starts the next group on it.
func (g *groups) landed(id uint64) {
	if group := g.again(id, nil); len(group) > 0 {
		go g.fly(id, group)
	}
}

// fly sends one group after another, while there are any.
func (g *groups) fly(id uint64, group []*member) {
	for len(group) > 0 {
		g.send(group)
		clear(group)
		group = g.again(id, group[:0])
	}
}

// send sends one group and gives its members their outcomes. After a panic of the client each member is sent
// again, alone, so that the callers meet it.
func (g *groups) send(group []*member) {
	told := 0
	tell := func(o outcome) {
		group[told].done <- o
		told++
	}
	defer func() {
		if recover() != nil {
			for told < len(group) {
				tell(outcome{err: errAlone})
			}
		}
	}()
	g.sent[len(group)].Add(1)
	ctx, cancel := common(group)
	defer cancel()
	if m := group[0]; len(group) == 1 {
		reply, err := g.next.run(ctx, luascripts.SlidingWindow, m.keys, m.args)
		tell(outcome{reply, err})
		return
	}
	replies, err := g.decide(ctx, group)
	for i := range group {
		if err != nil {
			tell(outcome{err: err})
		} else {
			tell(outcome{reply: replies[i]})
		}
	}
}

// decide runs group.lua and returns a reply for each member.
func (g *groups) decide(ctx context.Context, group []*member) ([]any, error) {
	keys, args := make([]string, 0, maxGroupKeys), make([]any, 1, 1+5*maxGroupKeys)
	args[0] = group[0].args[0] // now_ms
	for _, m := range group {
		keys = append(keys, m.keys...)
		args = append(append(args, len(m.keys)), m.args[1:]...)
	}
	reply, err := g.next.run(ctx, luascripts.GroupScript, keys, args)
	switch {
	case err == nil:
	case redis.HasErrorPrefix(err, "CROSSSLOT"):
		if !g.off.Swap(true) {
			slog.Warn("ginlimit: Redis refuses keys of several users in one call, so decisions are sent one by one",
				"cause", "a Cluster behind one address", "cure", "redisclient.NewCluster or WithHashTags")
		}
		return nil, errAlone
	case isAnswer(err) && outage(err, 0) == nil:
		return nil, errAlone
	default:
		return nil, &groupError{error: err}
	}
	replies, _ := reply.([]any)
	if len(replies) != len(group) {
		return nil, fmt.Errorf("reply is %T of %d values, want an array of %d replies",
			reply, len(replies), len(group))
	}
	return replies, nil
}

// wait waits for the outcome of a member. If the caller leaves before the member was sent, nothing is
// charged. If it leaves later, wait goes on until its deadline, so that what was counted can be given back.
func (g *groups) wait(m *member) outcome {
	ctx := m.ctx
	select {
	case o := <-m.done:
		g.members.Put(m)
		return o
	case <-ctx.Done():
	}
	g.mu.Lock()
	if !m.sent {
		g.waiting.leave(m)
		g.mu.Unlock()
		return outcome{err: ctx.Err()}
	}
	g.mu.Unlock()
	staying, cancel := context.WithoutCancel(ctx), func() {}
	if until, ok := ctx.Deadline(); ok {
		staying, cancel = context.WithDeadline(staying, until)
	}
	defer cancel()
	select {
	case o := <-m.done:
		g.members.Put(m)
		return o
	case <-staying.Done():
		return outcome{err: staying.Err()}
	}
}

// common is the context of a group: it has the values of the first member, for traces, and ends when all
// members have given up.
func common(group []*member) (context.Context, context.CancelFunc) {
	ctx := context.WithoutCancel(group[0].ctx)
	var latest time.Time
	for _, m := range group {
		until, ok := m.ctx.Deadline()
		if !ok {
			return ctx, func() {}
		}
		if until.After(latest) {
			latest = until
		}
	}
	return context.WithDeadline(ctx, latest)
}
