package redisclient

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// SelfCheck checks a server, every master of a Cluster or every shard of a Ring as a limiter would use it. It
// returns what will go wrong as one error, with one line per problem, or nil. Call it at start and log the
// error; the limiter does not depend on it. The problems are:
//
//   - there is no connection, or the server takes no commands, and why;
//   - the server is a replica, or is older than Redis 6.2;
//   - its maxmemory-policy may evict keys of the limiter, so that users with nothing left are admitted again;
//   - this user may not load or run the scripts, or their commands on keys "ratelimit:*";
//   - the server belongs to a Cluster, and the client does not know it: if the server does not say so, a
//     script over two keys of different slots shows it.
//
// It loads the scripts, except close.lua, and runs them on its own keys, which it deletes. INFO and CONFIG
// GET are optional: if they are forbidden, as on managed services, their checks are left out. If a server
// does not answer, a separate connection finds out whether it speaks TLS and the client does not, or the
// other way round. The scripts run on one node of a Cluster.
//
// No line holds a part of the client's user, password or host. A node of a Cluster is named by its port and
// the first eight digits of its id, as in CLUSTER NODES; a shard by its name in the Ring.
func SelfCheck(ctx context.Context, c redis.UniversalClient) error {
	var r report
	switch c := c.(type) {
	case *redis.ClusterClient:
		checkCluster(ctx, c, &r)
	case *redis.Ring:
		checkRing(ctx, c, &r)
	default:
		s := serverOf(c, plainKeys)
		found := s.check(ctx)
		r.add(append(found, s.checkScripts(ctx, found)...)...)
	}
	return r.err()
}

func checkCluster(ctx context.Context, c *redis.ClusterClient, r *report) {
	o := c.Options()
	whole := server{client: c, keys: taggedKeys, network: "tcp", addrs: o.Addrs, tls: o.TLSConfig != nil}
	whole.secrets = secrets(o.Username, o.Password, o.Addrs...)
	ids := idsOf(ctx, c)
	err := c.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		s := serverOf(node, taggedKeys)
		s.secrets = append(s.secrets, whole.secrets...)
		s.name = nodeName(ids, node.Options().Addr)
		s.inCluster = true
		r.add(s.check(ctx)...)
		return nil
	})
	if err != nil {
		r.add(finding{kind: unusable, text: whole.trouble(ctx, err)})
	}
	r.add(whole.checkScripts(ctx, r.findings)...)
}

// idsOf returns the ids of the nodes by host:port, and also by port for nodes that announce no useful host.
func idsOf(ctx context.Context, c *redis.ClusterClient) map[string]string {
	ids := map[string]string{}
	//lint:ignore SA1019 Redis 6.2 has no CLUSTER SHARDS.
	for _, slots := range c.ClusterSlots(ctx).Val() {
		for _, node := range slots.Nodes {
			ids[node.Addr] = node.ID
			if _, port, err := net.SplitHostPort(node.Addr); err == nil {
				ids[port] = node.ID
			}
		}
	}
	return ids
}

func nodeName(ids map[string]string, addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	id, ok := ids[addr]
	if !ok {
		id = ids[port]
	}
	if len(id) < 8 {
		return "the node on port " + port
	}
	return "node " + id[:8] + " on port " + port
}

func checkRing(ctx context.Context, c *redis.Ring, r *report) {
	o := c.Options()
	hidden := secrets(o.Username, o.Password, slices.Collect(maps.Values(o.Addrs))...)
	names := map[string]string{} // by address
	for i, name := range slices.Sorted(maps.Keys(o.Addrs)) {
		shown := fmt.Sprintf("shard %q", name)
		if slices.ContainsFunc(hidden, func(s string) bool { return strings.Contains(name, s) }) {
			shown = fmt.Sprintf("shard %d of %d", i+1, len(o.Addrs))
		}
		names[o.Addrs[name]] = shown
	}
	asked := map[string]bool{}
	up := c.ForEachShard(ctx, func(ctx context.Context, shard *redis.Client) error {
		s := serverOf(shard, taggedKeys)
		s.secrets = append(s.secrets, hidden...)
		s.name = names[shard.Options().Addr]
		found := s.check(ctx)
		r.add(append(found, s.checkScripts(ctx, found)...)...)
		r.mu.Lock()
		defer r.mu.Unlock()
		asked[shard.Options().Addr] = true
		return nil
	})
	if up != nil {
		r.add(finding{kind: unusable, text: "the shards of the Ring cannot be listed"})
	}
	for addr, name := range names {
		if !asked[addr] {
			r.add(finding{kind: unusable, node: name, text: "the Ring has found it down"})
		}
	}
}

// secrets are what no line may hold.
func secrets(user, password string, addrs ...string) []string {
	all := []string{user, password}
	for _, addr := range addrs {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			host = addr
		}
		all = append(all, host)
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}
