package redisclient

import (
	"errors"
	"net"

	"github.com/redis/go-redis/v9"
)

// NewSentinel returns a client of the master with this name, a *redis.Client. The Sentinels at these
// addresses find it. An address without a port has the Sentinels' port, 26379.
//
// The credentials in an address are the Sentinels', as in go-redis. Those of the servers are the settings
// username and password. The database is in the address:
//
//	redis://:sentinel-password@10.0.0.1:26379/0?username=limiter&password=servers-password
//
// rediss:// is TLS to both Sentinels and servers. The settings replica_only, route_by_latency and
// route_randomly are refused: only the master counts.
func NewSentinel(master string, urls ...string) (redis.UniversalClient, error) {
	all, err := parseAll(urls)
	if err != nil {
		return nil, err
	}
	first := all[0]
	if named := first.take("master_name").settings.Get("master_name"); master == "" {
		master = named
	} else if named != "" && named != master {
		return nil, at(1, len(all), errors.New("master_name differs from the name that was given"))
	}
	if master == "" {
		return nil, errors.New("redisclient: no name of a master; want the one that the Sentinels monitor")
	}
	if first.isUnix() {
		return nil, at(1, len(all), errors.New("a Unix socket does not lead to Sentinels"))
	}
	if first.url.Port() == "" {
		first.url.Host = net.JoinHostPort(first.url.Hostname(), sentinelPort)
	}
	o, err := read(first, redis.ParseFailoverURL)
	if err == nil && (o.ReplicaOnly || o.RouteByLatency || o.RouteRandomly) {
		err = errors.New("replica_only, route_by_latency and route_randomly: only the master counts")
	}
	if err != nil {
		return nil, at(1, len(all), err)
	}
	o.MasterName = master
	for i, a := range all[1:] {
		if db, err := a.db(); err != nil || db != "" {
			return nil, at(i+2, len(all), errors.New("the database belongs to address 1"))
		}
		o.SentinelAddrs = append(o.SentinelAddrs, a.hostPort(sentinelPort))
	}
	impatient(&o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout, &o.PoolTimeout, &o.DialerRetries, &o.MaxRetries)
	if first.settings.Get("context_timeout_enabled") == "" {
		o.ContextTimeoutEnabled = true
	}
	if first.settings.Get("disableIdentity") == "" {
		o.DisableIdentity = true
	}
	return redis.NewFailoverClient(o), nil
}

const sentinelPort = "26379"
