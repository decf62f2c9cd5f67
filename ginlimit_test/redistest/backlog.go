package redistest

import (
	"net"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"
)

// Block closes all connections, and has the SYNs of new ones dropped until Pass: nobody accepts any, and as
// many as may wait for that do. The kernel answers no others.
func (p *Proxy) Block() {
	p.tb.Helper()
	p.set(blocking)
	p.mu.Lock()
	defer p.mu.Unlock()
	require.NoError(p.tb, p.listener.SetDeadline(time.Now())) // wakes accept
	for !p.parked {
		p.changed.Wait()
	}
	p.setBacklog(0)
	for range 10 {
		c, err := net.DialTimeout("tcp", p.Addr, 20*time.Millisecond)
		if err != nil {
			require.True(p.tb, err.(net.Error).Timeout(), "%v", err)
			return
		}
		p.queue = append(p.queue, c)
	}
	p.tb.Fatal("redistest: the backlog does not fill")
}

// answerSYNs ends what Block has begun.
func (p *Proxy) answerSYNs() {
	for _, c := range p.queue {
		_ = c.Close()
	}
	p.queue = nil
	p.setBacklog(128)
	require.NoError(p.tb, p.listener.SetDeadline(time.Time{}))
}

// setBacklog sets how many connections may wait to be accepted.
func (p *Proxy) setBacklog(n int) {
	raw, err := p.listener.SyscallConn()
	require.NoError(p.tb, err)
	require.NoError(p.tb, raw.Control(func(fd uintptr) { err = syscall.Listen(int(fd), n) }))
	require.NoError(p.tb, err)
}

func (p *Proxy) accept() {
	for p.mayAccept() {
		if c, err := p.listener.AcceptTCP(); err == nil {
			p.serving.Go(func() { p.serve(c) })
		}
	}
}

// mayAccept waits while connections are blocked, and reports whether there may be more.
func (p *Proxy) mayAccept() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.mode == blocking {
		p.parked = true
		p.changed.Broadcast()
		p.changed.Wait()
	}
	p.parked = false
	return p.mode != ended
}
