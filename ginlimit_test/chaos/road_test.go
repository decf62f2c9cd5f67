package chaos

import (
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// road is the way to a Redis that can be blocked so that nobody answers a SYN: what toxiproxy cannot do.
type road struct {
	Addr string

	listener *net.TCPListener
	target   string
	serving  sync.WaitGroup

	mu      sync.Mutex
	changed sync.Cond
	blocked bool
	ended   bool
	conns   map[net.Conn]struct{} // that are relayed
	queue   []net.Conn            // that wait to be accepted while the road is blocked
}

func newRoad(t *testing.T, target string) *road {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &road{Addr: l.Addr().String(), listener: l.(*net.TCPListener), target: target, conns: map[net.Conn]struct{}{}}
	r.changed.L = &r.mu
	r.serving.Go(r.accept)
	t.Cleanup(func() {
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

// block cuts all connections. The kernel then drops the SYN of new ones: nobody accepts any, and as many as may wait for
// that do.
func (r *road) block(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blocked = true
	r.cut()
	r.backlog(t, 0)
	for range 10 {
		c, err := net.DialTimeout("tcp", r.Addr, 20*time.Millisecond)
		if err != nil {
			require.True(t, err.(net.Error).Timeout(), "%v", err)
			return
		}
		r.queue = append(r.queue, c)
	}
	t.Fatal("the backlog does not fill")
}

func (r *road) unblock(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blocked = false
	r.cut()
	r.backlog(t, 128)
	r.changed.Broadcast()
}

// backlog sets how many connections may wait to be accepted.
func (r *road) backlog(t *testing.T, n int) {
	t.Helper()
	raw, err := r.listener.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) { err = syscall.Listen(int(fd), n) }))
	require.NoError(t, err)
}

func (r *road) cut() {
	for c := range r.conns {
		_ = c.Close()
	}
	for _, c := range r.queue {
		_ = c.Close()
	}
	r.queue = nil
}

func (r *road) accept() {
	for {
		c, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.serving.Go(func() { r.relay(c) })
		r.mu.Lock()
		for r.blocked && !r.ended {
			r.changed.Wait()
		}
		r.mu.Unlock()
	}
}

func (r *road) relay(client net.Conn) {
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
	_, _ = io.Copy(client, server)
}

func (r *road) enter(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.blocked || r.ended {
		return false
	}
	r.conns[c] = struct{}{}
	return true
}

func (r *road) leave(c net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
}
