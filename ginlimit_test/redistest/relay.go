package redistest

import (
	"bufio"
	"net"
	"time"
)

// relay is one connection of a client through a Proxy to the server. Commands and replies have a goroutine
// each, so that either side learns at once that the other hung up.
type relay struct {
	*Proxy
	client, server net.Conn
	asked          chan command  // the command in progress, if any
	answered       chan struct{} // the next may go
}

// command is what there is to know of a command when its reply comes.
type command struct {
	script bool
	last   bool // of what the client has sent so far
}

// serve relays until either side hangs up, a reply is lost or the mode changes.
func (p *Proxy) serve(client *net.TCPConn) {
	defer client.Close()
	server, err := net.DialTimeout("tcp", p.target, time.Second)
	if err != nil {
		return
	}
	defer server.Close()
	if !p.enter(client, server) {
		return
	}
	defer p.leave(client)
	r := &relay{p, client, server, make(chan command, 1), make(chan struct{}, 1)}
	p.serving.Go(r.commands)
	r.replies()
}

func (r *relay) commands() {
	defer r.server.Close()
	defer close(r.asked)
	in := bufio.NewReaderSize(r.client, 64<<10)
	for {
		value, err := readValue(in)
		if err != nil {
			return
		}
		if r.swallows() {
			continue
		}
		if _, err := r.server.Write(value); err != nil {
			return
		}
		r.asked <- command{script: isScript(value), last: in.Buffered() == 0}
		if _, ok := <-r.answered; !ok {
			return
		}
	}
}

func (r *relay) replies() {
	defer close(r.answered)
	in, out := bufio.NewReader(r.server), bufio.NewWriter(r.client)
	for {
		pushed, reply, err := readReply(in)
		if err != nil {
			return
		}
		c, ok := <-r.asked
		if !ok {
			return
		}
		lost := c.script && r.drop(reply)
		if !lost {
			_, _ = out.Write(append(pushed, reply...)) // Flush has the error
		}
		if lost || c.last {
			r.wait()
			if err := out.Flush(); err != nil || lost {
				return
			}
		}
		r.answered <- struct{}{}
	}
}
