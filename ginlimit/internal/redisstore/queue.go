package redisstore

import "context"

// member is a decision that waits to be sent in a group, or for its reply. It is reused after its reply was
// read.
type member struct {
	ctx  context.Context
	keys []string
	args []any // of sliding_window.lua
	done chan outcome

	sent, left bool    // guarded by the lock of its groups, like next
	next       *member // in its lane
}

// queue holds decisions that wait to be sent. Each owner has a lane, and the lanes take turns, so that many
// decisions of one owner delay others by at most one group. The zero value is empty. It is not safe for
// concurrent use.
type queue struct {
	lanes       map[string]*lane // by the first key
	first, last *lane            // in order of their turns
	free        *lane
	keys        int // of all waiting decisions
}

// lane holds the decisions of one owner, oldest first.
type lane struct {
	key         string
	first, last *member
	next        *lane
}

func (q *queue) add(m *member) {
	key := m.keys[0]
	q.keys += len(m.keys)
	if l := q.lanes[key]; l != nil {
		l.last.next = m
		l.last = m
		return
	}
	l := q.free
	if l == nil {
		l = &lane{}
	} else {
		q.free = l.next
	}
	*l = lane{key: key, first: m, last: m}
	if q.lanes == nil {
		q.lanes = make(map[string]*lane)
	}
	q.lanes[key] = l
	q.append(l)
}

// leave removes a waiting member.
func (q *queue) leave(m *member) {
	m.left = true // its lane drops it later
	q.keys -= len(m.keys)
}

// take appends to group the next members, in turns, as many as fit. A group shares one clock reading, so with
// WithClock only members with the same time go together.
func (q *queue) take(group []*member) []*member {
	keys := 0
	for q.first != nil {
		l := q.first
		if m := l.first; !m.left {
			keys += len(m.keys)
			if len(group) > 0 && (keys > maxGroupKeys || m.args[0] != group[0].args[0]) {
				break
			}
			m.sent = true
			q.keys -= len(m.keys)
			group = append(group, m)
		}
		q.first = l.next
		if q.first == nil {
			q.last = nil
		}
		l.first = l.first.next
		if l.first != nil {
			q.append(l)
		} else {
			delete(q.lanes, l.key)
			*l = lane{next: q.free}
			q.free = l
		}
	}
	return group
}

// append puts a lane at the end of the turns.
func (q *queue) append(l *lane) {
	l.next = nil
	if q.last == nil {
		q.first = l
	} else {
		q.last.next = l
	}
	q.last = l
}
