//go:build unix

package faulttest

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Road is the way to a Redis: a TCP relay that a test can make slow, or block so that nobody answers a SYN. Its methods are
// safe for concurrent use.
type Road struct {
	Addr string // host:port

	tb       testing.TB
	listener *net.TCPListener
	target   string
	delay    atomic.Int64 // of each reply, in nanoseconds
	serving  sync.WaitGroup

	mu      sync.Mutex
	changed sync.Cond
	blocked bool
	parked  bool // nobody accepts
	ended   bool
	conns   map[net.Conn]struct{} // that are relayed
	queue   []net.Conn            // that wait to be accepted while the road is blocked
}

// NewRoad starts a relay on a free loopback port in front of target (host:port). It ends with the test.
func NewRoad(tb testing.TB, target string) *Road {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	r := &Road{
		Addr:     l.Addr().String(),
		tb:       tb,
		listener: l.(*net.TCPListener),
		target:   target,
		conns:    map[net.Conn]struct{}{},
	}
	r.changed.L = &r.mu
	r.serving.Go(r.accept)
	tb.Cleanup(func() {
		r.mu.Lock()
		r.ended = true
		r.changed.Broadcast()
		_ = l.Close()
		r.cut()
		r.mu.Unlock()
		r.serving.Wait()
	})
	return r
}

// Slow delays each reply from now on.
func (r *Road) Slow(delay time.Duration) { r.delay.Store(int64(delay)) }

// Block cuts all connections. The kernel then drops the SYN of new ones: nobody accepts any, and as many as may wait for
// that do.
func (r *Road) Block() {
	r.tb.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blocked = true
	r.cut()
	require.NoError(r.tb, r.listener.SetDeadline(time.Now()))
	for !r.parked {
		r.changed.Wait()
	}
	r.backlog(0)
	for range 10 {
		c, err := net.DialTimeout("tcp", r.Addr, 20*time.Millisecond)
		if err != nil {
			require.True(r.tb, err.(net.Error).Timeout(), "%v", err)
			return
		}
		r.queue = append(r.queue, c)
	}
	r.tb.Fatal("faulttest: the backlog does not fill")
}

// Unblock lets new connections through again.
func (r *Road) Unblock() {
	r.tb.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blocked = false
	r.cut()
	r.backlog(128)
	require.NoError(r.tb, r.listener.SetDeadline(time.Time{}))
	r.changed.Broadcast()
}

// backlog sets how many connections may wait to be accepted.
func (r *Road) backlog(n int) {
	r.tb.Helper()
	raw, err := r.listener.SyscallConn()
	require.NoError(r.tb, err)
	require.NoError(r.tb, raw.Control(func(fd uintptr) { err = syscall.Listen(int(fd), n) }))
	require.NoError(r.tb, err)
}

func (r *Road) cut() {
	for c := range r.conns {
		_ = c.Close()
	}
	for _, c := range r.queue {
		_ = c.Close()
	}
	r.queue = nil
}

func (r *Road) accept() {
	for r.open() {
		if c, err := r.listener.Accept(); err == nil {
			r.serving.Go(func() { r.relay(c) })
		}
	}
}

// open waits while the road is blocked, and reports whether it is there at all.
func (r *Road) open() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.blocked && !r.ended {
		r.parked = true
		r.changed.Broadcast()
		r.changed.Wait()
	}
	r.parked = false
	return !r.ended
}

func (r *Road) relay(client net.Conn) {
	defer client.Close()
	if !r.enter(client) {
		return
	}
	defer r.leave(client)
	server, err := net.Dial("tcp", r.target)
	if err != nil {
		return
	}
	defer server.Close()
	r.serving.Go(func() {
		defer server.Close()
		_, _ = io.Copy(server, client)
	})
	reply := make([]byte, 64<<10)
	for {
		n, err := server.Read(reply)
		if err != nil {
			return
		}
		time.Sleep(time.Duration(r.delay.Load()))
		if _, err := client.Write(reply[:n]); err != nil {
			return
		}
	}
}

func (r *Road) enter(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.blocked || r.ended {
		return false
	}
	r.conns[c] = struct{}{}
	return true
}

func (r *Road) leave(c net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
}
