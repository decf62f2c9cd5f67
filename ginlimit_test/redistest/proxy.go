package redistest

import (
	"bytes"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Proxy is a TCP proxy in front of a Redis that a test can make slow, cut off, or lose replies to scripts:
// the script reaches the server and runs, its reply is dropped and the connection closed, so a client cannot
// tell whether it ran.
//
// Of each connection it takes one command at a time, pipelined ones too: what a client sent behind a lost
// reply never reaches the server. It does not serve SUBSCRIBE. Its methods are safe for concurrent use.
type Proxy struct {
	Addr string // host:port

	tb       testing.TB
	target   string
	listener *net.TCPListener
	serving  sync.WaitGroup

	mu               sync.Mutex
	changed          sync.Cond // what follows
	mode             mode
	delay            time.Duration
	pending, dropped int
	parked           bool                      // nobody accepts
	relayed          map[*net.TCPConn]net.Conn // from clients, and on to the server
	queue            []net.Conn                // fills the backlog while SYNs are dropped
}

// mode is what a Proxy does with connections.
type mode int

const (
	passing mode = iota
	blocking
	resetting
	swallowing
	ended // the test is over
)

// NewProxy starts a proxy on a free loopback port in front of target (host:port). It ends with the test.
func NewProxy(tb testing.TB, target string) *Proxy {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	p := &Proxy{
		Addr:     l.Addr().String(),
		tb:       tb,
		target:   target,
		listener: l.(*net.TCPListener),
		relayed:  map[*net.TCPConn]net.Conn{},
	}
	p.changed.L = &p.mu
	p.serving.Go(p.accept)
	tb.Cleanup(func() {
		p.set(ended)
		p.serving.Wait()
	})
	return p
}

// DropReplies loses the replies to the next n scripts (EVAL, EVALSHA) that run, on whatever connections.
// Other commands pass, and so does NOSCRIPT, since nothing ran. It replaces what an earlier call left over.
func (p *Proxy) DropReplies(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending = n
}

// Dropped is the number of replies lost so far.
func (p *Proxy) Dropped() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dropped
}

// Delay makes each reply come so much later from now on, those of one pipeline together.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Reset resets (RST) all connections, and new ones as soon as they are accepted, until Pass.
func (p *Proxy) Reset() { p.set(resetting) }

// Swallow accepts connections and commands, and forwards none, until Pass.
func (p *Proxy) Swallow() { p.set(swallowing) }

// Pass ends what Block, Reset, Swallow, Delay and DropReplies have begun.
func (p *Proxy) Pass() {
	p.Delay(0)
	p.DropReplies(0)
	p.set(passing)
}

func (p *Proxy) set(m mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.mode
	p.mode = m
	if m == blocking || m == resetting || m == ended {
		for client, server := range p.relayed {
			p.hangUp(client)
			_ = server.Close()
		}
	}
	if was == blocking && m != blocking {
		p.answerSYNs()
	}
	if m == ended {
		_ = p.listener.Close()
	}
	p.changed.Broadcast()
}

// hangUp closes a client's connection in the way of the mode.
func (p *Proxy) hangUp(client *net.TCPConn) {
	if p.mode == resetting {
		_ = client.SetLinger(0) // a reset
	}
	_ = client.Close()
}

// enter notes a connection, if the mode has use for it.
func (p *Proxy) enter(client *net.TCPConn, server net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mode != passing && p.mode != swallowing {
		p.hangUp(client)
		return false
	}
	p.relayed[client] = server
	return true
}

func (p *Proxy) leave(client *net.TCPConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.relayed, client)
}

// drop decides whether this reply to a script is lost.
func (p *Proxy) drop(reply []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending <= 0 || bytes.HasPrefix(reply, []byte("-NOSCRIPT")) {
		return false
	}
	p.pending--
	p.dropped++
	return true
}

func (p *Proxy) swallows() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mode == swallowing
}

// wait takes the delay of a reply.
func (p *Proxy) wait() {
	p.mu.Lock()
	d := p.delay
	p.mu.Unlock()
	time.Sleep(d)
}
