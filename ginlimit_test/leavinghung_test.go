package ginlimit_test

import (
	"context"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// beforeScript is a go-redis hook that is called when a script is about to be sent, alone or in a pipeline.
type beforeScript func()

func (f beforeScript) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f beforeScript) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		f.see(cmd)
		return next(ctx, cmd)
	}
}

func (f beforeScript) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			f.see(cmd)
		}
		return next(ctx, cmds)
	}
}

func (f beforeScript) see(cmd redis.Cmder) {
	if cmd.Name() == "evalsha" {
		f()
	}
}

// patientClients are clients that would wait for as long as any test takes.
var patientClients = map[string]func(t *testing.T, addr string, sent func()) redis.Scripter{
	"redisclient": func(t *testing.T, addr string, sent func()) redis.Scripter {
		rdb := limiterClient(t, "redis://"+addr+"?read_timeout=30s&dial_timeout=30s&pool_timeout=30s")
		rdb.AddHook(beforeScript(sent))
		return rdb
	},
	"go-redis": func(t *testing.T, addr string, sent func()) redis.Scripter {
		const long = 30 * time.Second
		rdb := redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: long, DialTimeout: long})
		t.Cleanup(func() { _ = rdb.Close() })
		rdb.AddHook(beforeScript(sent))
		return rdb
	},
}

// leavers are three callers of a server that hangs, who leave 10 ms after the client has sent their scripts:
// by a context that is cancelled, not at a deadline.
type leavers struct {
	srv     *redistest.Server
	limiter *ginlimit.Limiter
	sent    chan struct{}
	ctx     context.Context // ends when they leave
}

func newLeavers(t *testing.T, client string) *leavers {
	t.Helper()
	l := &leavers{srv: redistest.Start(t), sent: make(chan struct{}, 100)}
	rdb := patientClients[client](t, l.srv.Addr, func() { l.sent <- struct{}{} })
	l.limiter = ginlimit.NewLimiter(rdb, ginlimit.WithTimeout(30*time.Second))
	_, err := l.limiter.Check(t.Context(), "bob", 5, time.Minute) // the script is there
	require.NoError(t, err)
	for len(l.sent) > 0 {
		<-l.sent
	}
	l.srv.ResetStats(t)
	return l
}

// call makes the calls, lets their callers leave, and resumes the server when they have left, or if they
// wait for it.
func (l *leavers) call(t *testing.T, call func()) {
	t.Helper()
	var leave context.CancelFunc
	l.ctx, leave = context.WithCancel(t.Context())
	defer leave()
	l.srv.Pause()
	back := make(chan struct{})
	for range 3 {
		go func() {
			call()
			back <- struct{}{}
		}()
	}
	for range 3 {
		<-l.sent
	}
	time.AfterFunc(10*time.Millisecond, leave)
	time.AfterFunc(50*time.Millisecond, l.srv.Resume)
	for range 3 {
		<-back
	}
}

// requireNothingTaken waits until the server has admitted as often as it will, and has nothing of the user.
func (l *leavers) requireNothingTaken(t *testing.T, admissions int) {
	t.Helper()
	rdb := l.srv.Client(t)
	require.Eventually(t, func() bool {
		left := rdb.Exists(t.Context(), "ratelimit:alice:60", "ratelimit:alice:86400").Val()
		return l.srv.Calls(t, "zadd") == admissions && left == 0
	}, 5*time.Second, 5*time.Millisecond)
}

// Callers that leave while the server hangs are not charged when the server goes on. R34.
func TestCallersThatLeaveAHungServerAreNotCharged(t *testing.T) {
	captureLogs(t)
	for client := range patientClients {
		for mode, opts := range modes {
			t.Run(client+", "+mode, func(t *testing.T) {
				l := newLeavers(t, client)
				api := serve(t, func(c *gin.Context) {
					ctx, cancel := context.WithCancel(c.Request.Context())
					defer cancel()
					defer context.AfterFunc(l.ctx, cancel)()
					c.Request = c.Request.WithContext(ctx)
					c.Next()
				}, ginlimit.New(l.limiter, resolver, opts...))
				l.call(t, func() {
					if status := api.as("alice").StatusCode; status != 499 {
						t.Errorf("status %d, want 499", status)
					}
				})
				admissions := 3 // of minutes: nobody asks for the day of who has left
				if opts != nil {
					admissions = 6
				}
				l.requireNothingTaken(t, admissions)
			})
		}
	}
}
