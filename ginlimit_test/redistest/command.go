package redistest

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// do runs one command on a connection of its own. A dead server fails at once, a paused one after a second.
func (s *Server) do(args ...any) *redis.Cmd {
	cmd := redis.NewCmd(context.Background(), args...)
	if err := s.process(cmd); err != nil {
		cmd.SetErr(err)
	}
	return cmd
}

// need is do for a command that must succeed.
func (s *Server) need(tb testing.TB, args ...any) *redis.Cmd {
	tb.Helper()
	cmd := s.do(args...)
	require.NoError(tb, cmd.Err(), "redis-server %s: %v", s.Addr, args)
	return cmd
}

// process is do for a command with a reply type of its own.
func (s *Server) process(cmd redis.Cmder) error {
	conn, err := net.DialTimeout("tcp", s.Addr, time.Second) // go-redis would log that nobody listens
	if err != nil {
		return err
	}
	rdb := redis.NewClient(&redis.Options{
		Dialer:      func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		ReadTimeout: time.Second,
		MaxRetries:  -1,
	})
	defer rdb.Close()
	return rdb.Process(context.Background(), cmd)
}

// fields runs a command that answers in lines of name:value, such as INFO.
func (s *Server) fields(args ...any) (map[string]string, error) {
	text, err := s.do(args...).Text()
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, err
}
