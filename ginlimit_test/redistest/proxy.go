package redistest

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Proxy is a TCP proxy in front of a Redis that can lose the replies to scripts: the script reaches the server and runs,
// its reply is dropped and the connection closed. A client cannot tell whether its script ran.
//
// It takes one command at a time, pipelined ones too: what a client sent behind a lost reply never reaches the server.
// It does not serve SUBSCRIBE. Its methods are safe for concurrent use.
type Proxy struct {
	Addr string // host:port

	target string

	mu               sync.Mutex
	pending, dropped int
}

// NewProxy starts a proxy on a free loopback port in front of target (host:port). It ends with the test.
func NewProxy(tb testing.TB, target string) *Proxy {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	p := &Proxy{Addr: l.Addr().String(), target: target}

	ctx, cancel := context.WithCancel(context.Background())
	var connections sync.WaitGroup
	connections.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return // closed
			}
			connections.Go(func() { p.serve(ctx, client) })
		}
	})
	tb.Cleanup(func() {
		_ = l.Close()
		cancel()
		connections.Wait()
	})
	return p
}

// DropReplies loses the replies to the next n scripts (EVAL, EVALSHA) that run, on whatever connections. Other commands
// pass, and so does NOSCRIPT, since nothing ran. It replaces what an earlier call left over.
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

// serve relays commands and replies until either side hangs up, a reply is lost or the test ends.
func (p *Proxy) serve(ctx context.Context, client net.Conn) {
	defer client.Close()
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	defer context.AfterFunc(ctx, func() {
		_ = client.Close()
		_ = server.Close()
	})()

	commands, replies := bufio.NewReader(client), bufio.NewReader(server)
	for {
		command, err := readValue(commands)
		if err != nil {
			return
		}
		if _, err := server.Write(command); err != nil {
			return
		}
		pushed, reply, err := readReply(replies)
		if err != nil || isScript(command) && p.drop(reply) {
			return
		}
		if _, err := client.Write(append(pushed, reply...)); err != nil {
			return
		}
	}
}
