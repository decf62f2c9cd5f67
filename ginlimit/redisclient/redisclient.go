// Package redisclient makes go-redis clients with the settings that a rate limiter needs: an answer
// soon or an error, instead of go-redis's patience for work that must be done.
//
//	| setting                 | go-redis | here   | why                                                   |
//	|-------------------------|----------|--------|-------------------------------------------------------|
//	| ContextTimeoutEnabled   | false    | true   | otherwise a deadline does not end a read              |
//	| Read, Write, PoolTimeout| 3 to 6 s | 100 ms | a request waits no longer for permission to run       |
//	| DialTimeout             | 5 s      | 500 ms | a dial goes on after its caller left, for the next one|
//	| DialerRetries           | 5        | 1      | a refused connection is an answer                     |
//	| MaxRetries              | 3        | 1      | one lost reply is repeated, an outage is not          |
//	| Cluster state reload    | 60 s     | 2 s    | finds a promoted replica                              |
//
// A setting in a URL's query, such as ?read_timeout=250ms or ?pool_size=50, wins; one that is 0 counts
// as not given, and ?max_retries=-1 is none.
package redisclient

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	timeout     = 100 * time.Millisecond
	dialTimeout = 500 * time.Millisecond
	reload      = 2 * time.Second
)

// New returns a client of one server, or, given several addresses, of the Cluster that they belong
// to. Each is redis://[user:password@]host:port[/db], rediss:// for TLS, unix:///path, or host:port.
// Addresses of a Cluster share the first one's credentials, TLS and settings.
//
// It connects to nothing, so the server may come up later. An error names the position of the
// address and the rule, never the address itself: it may hold a password.
func New(urls ...string) (redis.UniversalClient, error) {
	if len(urls) == 0 {
		return nil, errors.New("redisclient: no address; want redis://host:port or host:port")
	}
	all := make([]*redis.Options, len(urls))
	for i, u := range urls {
		o, err := parse(u)
		if err == nil && len(urls) > 1 {
			err = fitsCluster(o, all[0], strings.Contains(u, "?"))
		}
		if err != nil {
			return nil, fmt.Errorf("redisclient: address %d of %d: %w", i+1, len(urls), err)
		}
		all[i] = o
	}
	first := all[0]
	if len(all) == 1 {
		first.MaintNotificationsConfig = noMaintNotifications()
		return redis.NewClient(first), nil
	}
	addrs := make([]string, len(all))
	for i, o := range all {
		addrs[i] = o.Addr
	}
	return redis.NewClusterClient(&redis.ClusterOptions{
		Addrs:                      addrs,
		ClientName:                 first.ClientName,
		Protocol:                   first.Protocol,
		Username:                   first.Username,
		Password:                   first.Password,
		TLSConfig:                  first.TLSConfig,
		MaxRetries:                 first.MaxRetries,
		MinRetryBackoff:            first.MinRetryBackoff,
		MaxRetryBackoff:            first.MaxRetryBackoff,
		DialTimeout:                first.DialTimeout,
		DialerRetries:              first.DialerRetries,
		ReadTimeout:                first.ReadTimeout,
		WriteTimeout:               first.WriteTimeout,
		ContextTimeoutEnabled:      first.ContextTimeoutEnabled,
		PoolFIFO:                   first.PoolFIFO,
		PoolSize:                   first.PoolSize,
		MaxConcurrentDials:         first.MaxConcurrentDials,
		PoolTimeout:                first.PoolTimeout,
		MinIdleConns:               first.MinIdleConns,
		MaxIdleConns:               first.MaxIdleConns,
		MaxActiveConns:             first.MaxActiveConns,
		ConnMaxIdleTime:            first.ConnMaxIdleTime,
		ConnMaxLifetime:            first.ConnMaxLifetime,
		ConnMaxLifetimeJitter:      first.ConnMaxLifetimeJitter,
		DisableIdentity:            first.DisableIdentity,
		MaintNotificationsConfig:   noMaintNotifications(),
		ClusterStateReloadInterval: reload,
	}), nil
}

// noMaintNotifications saves each new connection a handshake that only some managed services answer.
func noMaintNotifications() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

func parse(address string) (*redis.Options, error) {
	address = strings.TrimSpace(address)
	if !strings.Contains(address, "://") {
		if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" {
			return nil, errors.New("want redis://host:port or host:port")
		}
		address = "redis://" + address
	}
	o, err := redis.ParseURL(address)
	if err != nil {
		if strings.Contains(address, "@") { // the error may quote what was taken for another part
			err = errors.New("not a URL that can be parsed; is a special character in the password percent-encoded?")
		}
		return nil, err
	}
	o.ContextTimeoutEnabled = true
	o.DisableIdentity = true // saves a new connection two commands, and users a permission
	o.DialerRetries = 1
	o.MaxRetries = cmp.Or(o.MaxRetries, 1)
	o.DialTimeout = cmp.Or(o.DialTimeout, dialTimeout)
	o.ReadTimeout = cmp.Or(o.ReadTimeout, timeout)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, timeout)
	o.PoolTimeout = cmp.Or(o.PoolTimeout, timeout)
	return o, nil
}

// fitsCluster tells what an address of a Cluster cannot have; first is nil for the first one.
func fitsCluster(o, first *redis.Options, hasSettings bool) error {
	switch {
	case o.Network == "unix":
		return errors.New("a Cluster is not reached over a Unix socket")
	case o.DB != 0:
		return fmt.Errorf("database %d: a Cluster has only database 0", o.DB)
	case first == nil:
		return nil
	case hasSettings:
		return errors.New("settings belong to address 1, whose count for all")
	case o.TLSConfig != nil && first.TLSConfig == nil:
		return errors.New("TLS belongs to address 1, whose scheme counts for all")
	case (o.Username != "" || o.Password != "") && (o.Username != first.Username || o.Password != first.Password):
		return errors.New("credentials differ from those of address 1")
	}
	return nil
}
