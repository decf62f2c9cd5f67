package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"
)

// browser is an HTTP client of one connection that allocates nothing: the allocations that are
// counted are the server's.
type browser struct {
	conn    net.Conn
	replies *bufio.Reader
	request []byte
}

func dialBrowser(addr string) (*browser, error) {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return nil, err
	}
	return &browser{conn: conn, replies: bufio.NewReader(conn)}, nil
}

func (b *browser) Close() error { return b.conn.Close() }

// get asks for / as that user and reads the whole answer: 200 is allowed, 429 is not.
func (b *browser) get(_ context.Context, user string) (allowed bool, err error) {
	b.request = append(b.request[:0], "GET / HTTP/1.1\r\nHost: peers\r\n"+userHeader+": "...)
	b.request = append(append(b.request, user...), "\r\n\r\n"...)
	if _, err := b.conn.Write(b.request); err != nil {
		return false, err
	}
	status, err := b.line()
	if err != nil {
		return false, err
	}
	if len(status) < len("HTTP/1.1 200") {
		return false, fmt.Errorf("answer %q", status)
	}
	code, err := strconv.Atoi(string(status[9:12]))
	if err != nil {
		return false, fmt.Errorf("answer %q", status)
	}
	if err := b.skipRest(); err != nil {
		return false, err
	}
	if code != http.StatusOK && code != http.StatusTooManyRequests {
		return false, fmt.Errorf("status %d", code)
	}
	return code == http.StatusOK, nil
}

var contentLength = []byte("Content-Length: ")

func (b *browser) skipRest() error {
	length := -1
	for {
		header, err := b.line()
		if err != nil {
			return err
		}
		if len(header) == 0 {
			break
		}
		if value, ok := bytes.CutPrefix(header, contentLength); ok {
			if length, err = strconv.Atoi(string(value)); err != nil {
				return err
			}
		}
	}
	if length < 0 {
		return fmt.Errorf("answer without Content-Length")
	}
	_, err := b.replies.Discard(length)
	return err
}

// line reads a line without its end; it is valid until the next read.
func (b *browser) line() ([]byte, error) {
	line, err := b.replies.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	return bytes.TrimRight(line, "\r\n"), nil
}
