package redistest

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
)

// masterName is what the sentinels call the master that they watch.
const masterName = "mymaster"

// SentinelSet is a master and its replica, watched by three sentinels under the name mymaster. A master that
// ends, or hangs for half a second, is replaced by the replica about a second later.
type SentinelSet struct {
	Master, Replica *Server // as started; a failover does not swap them
	Sentinels       []*Server
}

// StartSentinel runs a sentinel set and returns once the replica is in sync and every sentinel knows all the
// others. It ends with the test; without a redis-server it does as [Start].
func StartSentinel(tb testing.TB) *SentinelSet {
	tb.Helper()
	s := &SentinelSet{Master: Start(tb, "--repl-diskless-sync-delay", "0")}
	host, port := s.Master.hostPort()
	s.Replica = Start(tb, "--repl-diskless-sync-delay", "0", "--replicaof", host+" "+port)
	s.Replica.must(await(agreeTimeout, s.Replica.inSync), "replicate")

	for range 3 {
		sentinel := Start(tb, "--sentinel")
		// Ten times as talkative as usual (100 ms for 1 to 10 s), since all of them share a machine.
		sentinel.need(tb, "sentinel", "debug", "publish-period", 100, "info-period", 100, "ask-period", 100)
		sentinel.need(tb, "sentinel", "monitor", masterName, host, port, 2)
		sentinel.need(tb, "sentinel", "set", masterName, "down-after-milliseconds", 500, "failover-timeout", 2000)
		s.Sentinels = append(s.Sentinels, sentinel)
	}
	for _, sentinel := range s.Sentinels {
		sentinel.must(await(agreeTimeout, sentinel.seesSet), "see the whole set")
	}
	return s
}

// Client connects to whoever is master, which it learns from the sentinels, with the timeouts and retries of
// a client of one server; the zero Options are go-redis's defaults. It is closed at the end of the test.
func (s *SentinelSet) Client(tb testing.TB, of *redis.Options) *redis.Client {
	rdb := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName:            masterName,
		SentinelAddrs:         addrs(s.Sentinels),
		ContextTimeoutEnabled: of.ContextTimeoutEnabled,
		DisableIdentity:       of.DisableIdentity,
		DialerRetries:         of.DialerRetries,
		MaxRetries:            of.MaxRetries,
		DialTimeout:           of.DialTimeout,
		ReadTimeout:           of.ReadTimeout,
		WriteTimeout:          of.WriteTimeout,
		PoolTimeout:           of.PoolTimeout,
	})
	tb.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// seesSet tells what this sentinel still misses of its set.
func (s *Server) seesSet() error {
	cmd := redis.NewMapStringStringCmd(context.Background(), "sentinel", "master", masterName)
	err := s.process(cmd)
	master := cmd.Val()
	if err == nil && (master["flags"] != "master" || master["num-slaves"] != "1" ||
		master["num-other-sentinels"] != "2") {
		err = fmt.Errorf("sees %v", master)
	}
	return err
}
