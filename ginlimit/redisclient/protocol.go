package redisclient

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"
)

// otherProtocol finds out whether a server that did not answer speaks TLS and the client does not, or the
// other way round; "" is neither. It must try: a plain server takes TLS for the start of a command and waits,
// and a server with TLS hangs up. Neither says why.
func (s server) otherProtocol(ctx context.Context) string {
	for _, addr := range s.addrs {
		switch {
		case s.tls && speaksPlain(ctx, s.network, addr):
			return speaksNoTLS
		case !s.tls && s.network == "tcp" && speaksTLS(ctx, addr):
			return "the server speaks TLS on this port; want rediss:// instead of redis://, or its plain port"
		}
	}
	return ""
}

const speaksNoTLS = "the server does not speak TLS on this port; want redis:// instead of rediss://, " +
	"or its TLS port"

const probeTime = 500 * time.Millisecond

func speaksPlain(ctx context.Context, network, addr string) bool {
	conn, err := (&net.Dialer{Timeout: probeTime}).DialContext(ctx, network, addr)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	first := make([]byte, 1)
	if err := conn.SetDeadline(time.Now().Add(probeTime)); err != nil {
		return false
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	_, err = conn.Read(first)
	return err == nil && (first[0] == '+' || first[0] == '-')
}

// speaksTLS sends the server nothing and uses nothing that it sends, so the certificate is not checked.
func speaksTLS(ctx context.Context, addr string) bool {
	dialer := tls.Dialer{
		NetDialer: &net.Dialer{Timeout: probeTime},
		Config:    &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12},
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		op, ok := errors.AsType[*net.OpError](err)
		return ok && op.Op == "remote error" // a TLS alert
	}
	_ = conn.Close()
	return true
}
