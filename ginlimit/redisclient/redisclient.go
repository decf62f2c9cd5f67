// Package redisclient makes go-redis clients with the settings that a rate limiter needs: a quick answer or
// an error. go-redis's defaults wait longer, for work that must be done.
//
//	| setting                 | go-redis | here   | why                                                   |
//	|-------------------------|----------|--------|-------------------------------------------------------|
//	| ContextTimeoutEnabled   | false    | true   | otherwise a deadline does not end a read              |
//	| Read, Write, PoolTimeout| 5 to 6 s | 100 ms | a request waits no longer for permission to run       |
//	| DialTimeout             | 5 s      | 500 ms | a dial goes on after its caller left, for the next one|
//	| DialerRetries           | 5        | 1      | a refused connection is an answer                     |
//	| MaxRetries              | 3        | 1      | one lost reply is repeated, an outage is not          |
//	| Cluster state reload    | 60 s     | 2 s    | finds a promoted replica                              |
//	| Cluster MaxRetryBackoff | 1 s      | 8 ms   | three repeats of TRYAGAIN leave time for another way  |
//
// An address is redis://[user:password@]host:port[/db], rediss:// for TLS, or host:port; a single server may
// also be unix:///path. valkey:// means redis://; valkeys:// and redis+tls:// mean rediss://. Special
// characters in user or password are percent-encoded.
//
// A setting in an address's query, such as ?read_timeout=250ms or ?pool_size=50, wins. It has go-redis's
// name, for any kind of client. A duration of 0 counts as not given, a duration below 0 means none, and
// ?max_retries=-1 means no repeat. Further addresses share the credentials, the TLS and the settings of the
// first. They may also be written as ?addr=host:port, once or more often.
//
// No constructor connects to anything, so the servers may come up later. Errors name the position of the
// address, the setting and the rule, never a part of a user, a password or a host. They do name an unknown
// scheme, the text before ://.
package redisclient

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	timeout     = 100 * time.Millisecond
	dialTimeout = 500 * time.Millisecond
	reload      = 2 * time.Second
	backoff     = 8 * time.Millisecond
)

// New returns a client of one server, a *redis.Client. For several addresses it returns a client of their
// Cluster, a *redis.ClusterClient.
func New(urls ...string) (redis.UniversalClient, error) {
	all, err := parseAll(urls)
	if err != nil {
		return nil, err
	}
	if len(all) > 1 {
		return newCluster(all)
	}
	return newClient(all[0])
}

// NewCluster returns a client of the Cluster that the servers at these addresses belong to, a
// *redis.ClusterClient. One address is enough to find the others.
func NewCluster(urls ...string) (redis.UniversalClient, error) {
	all, err := parseAll(urls)
	if err != nil {
		return nil, err
	}
	return newCluster(all)
}

func newClient(a *address) (redis.UniversalClient, error) {
	others := a.take("dialer_retries", "dialer_retry_timeout", "failing_timeout_seconds")
	more, err := read(others, redis.ParseClusterURL)
	if err != nil {
		return nil, at(1, 1, err)
	}
	o, err := read(a, redis.ParseURL) // it does not know the others
	if err != nil {
		return nil, at(1, 1, err)
	}
	o.DialerRetries, o.DialerRetryTimeout = more.DialerRetries, more.DialerRetryTimeout
	o.FailingTimeoutSeconds = more.FailingTimeoutSeconds
	impatient(&o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout, &o.PoolTimeout, &o.DialerRetries, &o.MaxRetries)
	o.ContextTimeoutEnabled = true
	o.DisableIdentity = true // saves a new connection two commands, and users a permission
	o.MaintNotificationsConfig = noMaintNotifications()
	return redis.NewClient(o), nil
}

func newCluster(all []*address) (redis.UniversalClient, error) {
	for i, a := range all {
		if err := a.fitsCluster(); err != nil {
			return nil, at(i+1, len(all), err)
		}
	}
	first := all[0]
	first.url.Path = ""
	first.settings.Del("db")
	verify := first.take("skip_verify") // ParseClusterURL does not know it
	o, err := read(first, redis.ParseClusterURL)
	if err == nil && o.TLSConfig != nil {
		o.TLSConfig.MinVersion = tls.VersionTLS12
		var server *redis.Options
		if server, err = read(verify, redis.ParseURL); err == nil {
			o.TLSConfig.InsecureSkipVerify = server.TLSConfig.InsecureSkipVerify
		}
	} else if err == nil && len(verify.settings) > 0 {
		err = verify.unknown("skip_verify")
	}
	if err != nil {
		return nil, at(1, len(all), err)
	}
	for _, a := range all[1:] {
		o.Addrs = append(o.Addrs, a.hostPort("6379"))
	}
	impatient(&o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout, &o.PoolTimeout, &o.DialerRetries, &o.MaxRetries)
	o.ContextTimeoutEnabled = true
	o.DisableIdentity = true
	o.MaintNotificationsConfig = noMaintNotifications()
	o.ClusterStateReloadInterval = reload
	o.MaxRetryBackoff = cmp.Or(o.MaxRetryBackoff, backoff)
	return redis.NewClusterClient(o), nil
}

// impatient sets what no address has set.
func impatient(dial, read, write, pool *time.Duration, dials, retries *int) {
	*dial = cmp.Or(*dial, dialTimeout)
	*read = cmp.Or(*read, timeout)
	*write = cmp.Or(*write, timeout)
	*pool = cmp.Or(*pool, timeout)
	*dials = cmp.Or(*dials, 1)
	*retries = cmp.Or(*retries, 1)
}

// noMaintNotifications saves each new connection a handshake that only some managed services answer.
func noMaintNotifications() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// parseAll parses the addresses, and after them those in the addr settings of the first.
func parseAll(urls []string) ([]*address, error) {
	if len(urls) == 0 {
		return nil, errors.New("redisclient: no address; want redis://host:port or host:port")
	}
	all := make([]*address, len(urls))
	for i, u := range urls {
		a, err := parseAddress(u)
		if err == nil && i > 0 {
			err = a.fits(all[0])
		}
		if err != nil {
			return nil, at(i+1, len(urls), err)
		}
		withAliases(a.settings)
		all[i] = a
	}
	for _, addr := range all[0].take("addr").settings["addr"] {
		more, err := parseAddress(addr)
		if _, _, notPlain := net.SplitHostPort(addr); err != nil || notPlain != nil || more.url.Path != "" {
			return nil, at(1, len(urls), errors.New("addr: want host:port"))
		}
		all = append(all, more)
	}
	if len(all) > 1 && all[0].isUnix() {
		return nil, at(1, len(urls), errors.New("several addresses are not reached over a Unix socket"))
	}
	return all, nil
}

// at says which address an error is about.
func at(position, of int, err error) error {
	return fmt.Errorf("redisclient: address %d of %d: %w", position, of, err)
}

// fits returns an error if an address after the first has something that it cannot have.
func (a *address) fits(first *address) error {
	user, firstUser := a.url.User, first.url.User
	switch {
	case a.isUnix():
		return errors.New("several addresses are not reached over a Unix socket")
	case len(a.settings) > 0:
		return errors.New("settings belong to address 1, whose count for all")
	case a.isTLS() && !first.isTLS():
		return errors.New("TLS belongs to address 1, whose scheme counts for all")
	case user != nil && (firstUser == nil || *user != *firstUser):
		return errors.New("credentials differ from those of address 1")
	}
	return nil
}

// fitsCluster returns an error if an address has something that no address of a Cluster can have.
func (a *address) fitsCluster() error {
	if a.isUnix() {
		return errors.New("a Cluster is not reached over a Unix socket")
	}
	if db, err := a.db(); err != nil || db != "" && db != "0" {
		return errors.New("a database other than 0, which is the only one of a Cluster")
	}
	return nil
}
