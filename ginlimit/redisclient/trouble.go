package redisclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// trouble describes an error in texts of this package: errors of a dial name host and port, those of a
// certificate the host, and those of a server may name the user.
func (s server) trouble(ctx context.Context, err error) string {
	if several, ok := errors.AsType[interface {
		error
		Unwrap() []error
	}](err); ok { // of the Sentinels, which all failed
		var words []string
		for _, err := range several.Unwrap() {
			if w := s.trouble(ctx, err); !slices.Contains(words, w) {
				words = append(words, w)
			}
		}
		slices.Sort(words)
		return "no Sentinel tells the master: " + strings.Join(words, "; ")
	}
	if _, ok := errors.AsType[redis.Error](err); ok {
		return s.refusal(err)
	}
	if words := connection(err); words != "" {
		return words
	}
	if words := s.otherProtocol(ctx); words != "" {
		return words
	}
	return silence(err)
}

// connection says why there is no connection, or "" if that is not certain.
func connection(err error) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		switch {
		case dns.IsNotFound:
			return "the host name cannot be resolved: no such host"
		case dns.IsTimeout:
			return "the host name cannot be resolved: time-out of the name server"
		}
		return "the host name cannot be resolved"
	}
	if words := certificate(err); words != "" {
		return words
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return speaksNoTLS
	}
	switch {
	case errors.Is(err, context.Canceled):
		return "the check was cancelled before the server answered"
	case errors.Is(err, redis.ErrClosed):
		return "the client is closed"
	case errors.Is(err, redis.ErrPoolTimeout):
		return "all connections of the client's pool are in use"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused: nothing listens on that port"
	case errors.Is(err, fs.ErrNotExist):
		return "the Unix socket does not exist"
	case errors.Is(err, fs.ErrPermission):
		return "this process may not connect: permission denied"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no route to the host"
	}
	return ""
}

func certificate(err error) string {
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "the server's TLS certificate is for another host name"
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "the server's TLS certificate is signed by an authority that is not trusted here"
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		if invalid.Reason == x509.Expired {
			return "the server's TLS certificate has expired or is not valid yet"
		}
		return "the server's TLS certificate is not valid for this use"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "the server's TLS certificate cannot be verified"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" {
		return "the server ended the TLS handshake; does it want a client certificate, or another version of TLS?"
	}
	return ""
}

// silence says how a connection ended without an answer.
func silence(err error) string {
	timed, isNet := errors.AsType[net.Error](err)
	op, isOp := errors.AsType[*net.OpError](err)
	switch {
	case isNet && timed.Timeout() && isOp && op.Op == "dial":
		return "time-out: no connection within the dial time-out"
	case isNet && timed.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return "time-out: no answer in time"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		return "the connection is closed without an answer"
	case isOp:
		return "no connection: " + op.Op + " failed"
	}
	return fmt.Sprintf("what answers does not speak Redis's protocol (%T)", err)
}
