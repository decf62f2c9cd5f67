package main

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"time"
)

// pump is a bare connection that keeps the server busy: all requests are encoded beforehand and
// sent without waiting, so that the client costs next to nothing and the server never idles.
type pump struct {
	conn    net.Conn
	replies *bufio.Reader
}

func dialPump(addr string) (*pump, error) {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return nil, err
	}
	return &pump{conn: conn, replies: bufio.NewReaderSize(conn, 1<<16)}, nil
}

func (p *pump) Close() error { return p.conn.Close() }

// pumpLimit bounds one run of a pump.
const pumpLimit = time.Minute

// fillLog makes a sorted set of that many entries, a millisecond apart, as ginlimit keeps them: the
// newest is of now.
func (p *pump) fillLog(key string, entries int, now time.Time, ttl time.Duration) error {
	const most = 1_000 // in a command
	var requests []byte
	replies := 1
	for first := 0; first < entries; first += most {
		add := []string{"ZADD", key}
		for n := first; n < min(entries, first+most); n++ {
			add = append(add, strconv.FormatInt(now.UnixMilli()-int64(entries-1-n), 10), requestID())
		}
		requests = appendRequest(requests, add...)
		replies++
	}
	requests = appendRequest(requests, "EXPIRE", key, strconv.Itoa(int(ttl/time.Second)))
	_, err := p.run(requests, replies, nil)
	return err
}

// run sends the requests and reads that many replies. It returns the time from the first byte to
// the last reply. See skim for what check is given.
func (p *pump) run(requests []byte, replies int, check func(first string, values int) error) (time.Duration, error) {
	if err := p.conn.SetDeadline(time.Now().Add(pumpLimit)); err != nil {
		return 0, err
	}
	sent := make(chan error, 1)
	start := time.Now()
	go func() {
		_, err := p.conn.Write(requests)
		sent <- err
	}()
	for range replies {
		first, values, err := skim(p.replies)
		if err == nil && check != nil {
			err = check(first, values)
		}
		if err != nil {
			_ = p.conn.Close() // the sender may wait for ever
			return 0, err
		}
	}
	took := time.Since(start)
	return took, <-sent
}

// skim reads one reply, and returns its first value as text and the number of values. Nested arrays
// are not expected. An error reply is an error.
func skim(r *bufio.Reader) (first string, values int, err error) {
	line, err := replyLine(r)
	if err != nil {
		return "", 0, err
	}
	if line[0] != '*' {
		return string(line[1:]), 1, nil
	}
	if values, err = strconv.Atoi(string(line[1:])); err != nil {
		return "", 0, err
	}
	for i := range values {
		if line, err = replyLine(r); err != nil {
			return "", 0, err
		}
		if i == 0 {
			first = string(line[1:])
		}
	}
	return first, values, nil
}

// replyLine reads a line without its end; it is valid until the next read.
func replyLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	if len(line) < 3 || line[0] == '-' || line[0] == '$' {
		return nil, fmt.Errorf("unexpected reply %q", line)
	}
	return line[:len(line)-2], nil
}

// appendRequest appends a command in the protocol's form.
func appendRequest(buf []byte, args ...string) []byte {
	buf = append(buf, '*')
	buf = strconv.AppendInt(buf, int64(len(args)), 10)
	for _, arg := range args {
		buf = append(buf, "\r\n$"...)
		buf = strconv.AppendInt(buf, int64(len(arg)), 10)
		buf = append(buf, "\r\n"...)
		buf = append(buf, arg...)
	}
	return append(buf, "\r\n"...)
}
