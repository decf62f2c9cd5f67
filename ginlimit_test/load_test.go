package ginlimit_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tally counts statuses of users.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *tally) add(user string, status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[fmt.Sprint(user, status)]++
}

func (c *tally) count(user string, status int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[fmt.Sprint(user, status)]
}

// load is one user who calls services without pause, in four places at once.
type load struct {
	t       *testing.T
	stop    func()
	mu      sync.Mutex
	answers []answered
}

type answered struct {
	sent   time.Time
	status int
}

func newLoad(t *testing.T, user string, apis ...*api) *load {
	t.Helper()
	l := &load{t: t}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				sent := time.Now()
				status := apis[i%len(apis)].as(user).StatusCode
				l.mu.Lock()
				l.answers = append(l.answers, answered{sent, status})
				l.mu.Unlock()
				time.Sleep(4 * time.Millisecond)
			}
		})
	}
	l.stop = func() {
		cancel()
		wg.Wait()
	}
	t.Cleanup(l.stop)
	return l
}

// count is how many answers had that status so far.
func (l *load) count(status int) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.answers {
		if a.status == status {
			n++
		}
	}
	return n
}

func (l *load) await(happened func() bool) {
	l.t.Helper()
	for begin := time.Now(); !happened(); time.Sleep(time.Millisecond) {
		require.Less(l.t, time.Since(begin), time.Minute)
	}
}

// awaitFrom waits for the answer to a call that was sent after begin.
func (l *load) awaitFrom(begin time.Time, wanted func(status int) bool) {
	l.t.Helper()
	l.await(func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return slices.ContainsFunc(l.answers, func(a answered) bool {
			return a.sent.After(begin) && wanted(a.status)
		})
	})
}
