package redisclient

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// server is one server to check, or a whole Cluster.
type server struct {
	client    redis.UniversalClient
	name      string // which of several
	keys      [2]string
	inCluster bool // and the client knows it
	network   string
	addrs     []string // for a second connection; none behind Sentinels
	tls       bool
	secrets   []string
}

func serverOf(c redis.UniversalClient, keys [2]string) server {
	s := server{client: c, keys: keys}
	if c, ok := c.(interface{ Options() *redis.Options }); ok {
		o := c.Options()
		s.network, s.tls = o.Network, o.TLSConfig != nil
		s.secrets = secrets(o.Username, o.Password, o.Addr)
		if o.Addr != "FailoverClient" { // go-redis's placeholder: the address comes from Sentinels
			s.addrs = []string{o.Addr}
		}
	}
	return s
}

func (s server) finding(k kind, text string) finding {
	return finding{kind: k, node: s.name, text: text}
}

// check checks what the server says about itself.
func (s server) check(ctx context.Context) []finding {
	if err := s.client.Ping(ctx).Err(); err != nil && !redis.IsPermissionError(err) {
		return []finding{s.finding(unusable, s.trouble(ctx, err))}
	}
	info := parseInfo(s.client.Info(ctx).Val()) // all sections at once: Redis 6.2 takes no list of them
	var found []finding
	if version := info["redis_version"]; tooOld(version) {
		found = append(found, s.finding(setting, "the server is Redis "+version+"; the scripts need 6.2 or newer"))
	}
	if role := info["role"]; role == "slave" || role == "replica" {
		found = append(found, s.finding(setting, "the server is a replica and cannot count; connect to its master"))
	}
	if info["cluster_enabled"] == "1" && !s.inCluster {
		found = append(found, s.finding(knownCluster, "the server belongs to a Cluster, which this client does "+
			"not know; connect with redisclient.NewCluster, or, where one endpoint hides the nodes, give the "+
			"limiter ginlimit.WithHashTags"))
	}
	found = append(found, s.checkEviction(ctx, info)...)
	return append(found, s.load(ctx)...)
}

// checkEviction reads INFO, which managed services allow, and CONFIG if INFO has no policy.
func (s server) checkEviction(ctx context.Context, info map[string]string) []finding {
	maxmemory, policy := info["maxmemory"], info["maxmemory_policy"]
	if policy == "" {
		config := s.client.ConfigGet(ctx, "maxmemory*").Val()
		maxmemory, policy = config["maxmemory"], config["maxmemory-policy"]
	}
	if maxmemory == "0" || policy == "" || policy == "noeviction" {
		return nil
	}
	return []finding{s.finding(setting, "maxmemory-policy is "+policy+", which may evict the counts of users "+
		"and so admit too much; want noeviction")}
}

// parseInfo reads name:value lines. The names used here are unique over all sections.
func parseInfo(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}

// tooOld reports whether a version, such as "7.0.15", is below 6.2. A version that cannot be read is not.
func tooOld(version string) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (major < 6 || major == 6 && minor < 2)
}
