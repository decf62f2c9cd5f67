package redisclient

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/gin-tiers/ratelimit/luascripts"
)

// SelfCheck looks at a server, or at every master of a Cluster, as a limiter would use it, and
// returns what will go wrong, joined into one error with a line each; nil is a good server. It is
// for start-up, to be logged; limits work or fail without it.
//
//   - the server cannot be reached, is a replica, or is older than Redis 6.2;
//   - its maxmemory-policy may evict keys of the limiter, which admits users again that had none left;
//   - this user may not load or run the scripts, or their commands on keys "ratelimit:*";
//   - the server belongs to a Cluster, and the client does not know.
//
// It loads the scripts and runs each on a key of its own, which it deletes. INFO and CONFIG GET are
// asked politely: where they are forbidden, as on managed services, what they would tell is left out.
// The scripts run on one node of a Cluster, and a Ring is looked at through one of its shards.
func SelfCheck(ctx context.Context, c redis.UniversalClient) error {
	var found []string
	switch c := c.(type) {
	case *redis.ClusterClient:
		var mu sync.Mutex
		err := c.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			problems := checkServer(ctx, node, true)
			mu.Lock()
			defer mu.Unlock()
			for _, p := range problems {
				found = append(found, node.Options().Addr+": "+p)
			}
			return nil
		})
		if err != nil {
			found = append(found, fmt.Sprintf("the Cluster cannot be reached: %v", err))
		}
	default:
		found = checkServer(ctx, c, false)
	}
	if !slices.ContainsFunc(found, func(p string) bool { return strings.Contains(p, "cannot be") }) {
		if err := checkScripts(ctx, c); err != nil {
			found = append(found, "the scripts cannot be run: "+strings.ReplaceAll(err.Error(), "\n", "; "))
		}
	}
	slices.Sort(found)
	problems := make([]error, len(found))
	for i, p := range found {
		problems[i] = errors.New("redisclient: " + p)
	}
	return errors.Join(problems...)
}

func checkServer(ctx context.Context, c redis.UniversalClient, inCluster bool) (problems []string) {
	if err := c.Ping(ctx).Err(); err != nil && !redis.IsPermissionError(err) {
		return []string{fmt.Sprintf("the server cannot be reached: %v", err)}
	}
	if info, err := c.InfoMap(ctx, "server", "replication", "cluster").Result(); err == nil {
		if version := info["Server"]["redis_version"]; tooOld(version) {
			problems = append(problems, fmt.Sprintf("the server is Redis %s; the scripts need 6.2 or newer", version))
		}
		if role := info["Replication"]["role"]; role == "slave" {
			problems = append(problems, "the server is a replica and cannot count; connect to its master")
		}
		if info["Cluster"]["cluster_enabled"] == "1" && !inCluster {
			problems = append(problems, "the server belongs to a Cluster, which this client does not know; "+
				"give New several of its addresses, or its one address twice")
		}
	}
	config := c.ConfigGet(ctx, "maxmemory*").Val()
	if policy := config["maxmemory-policy"]; config["maxmemory"] != "0" && policy != "" && policy != "noeviction" {
		problems = append(problems, fmt.Sprintf("maxmemory-policy is %s, which may evict the counts of users "+
			"and so admit too much; want noeviction", policy))
	}
	for _, script := range []*redis.Script{
		luascripts.SlidingWindow, luascripts.PeekScript, luascripts.GiveBackScript, luascripts.ResetScript,
	} {
		if err := script.Load(ctx, c).Err(); err != nil {
			return append(problems, fmt.Sprintf("the scripts cannot be loaded: %v", err))
		}
	}
	return problems
}

// probeKey is a key that no user has: ids are encoded, and "!" would not stand in one.
const probeKey = "ratelimit:!self-check:1"

// checkScripts runs all that a limiter does once, on a key of its own that is gone afterwards.
func checkScripts(ctx context.Context, c redis.UniversalClient) error {
	keys := []string{probeKey}
	const second, ttl = 1000, 2
	for _, step := range []struct {
		script *redis.Script
		args   []any
	}{
		{luascripts.SlidingWindow, []any{"", second, 2, "a", ttl}},
		{luascripts.SlidingWindow, []any{"", second, 2, "b", ttl}},
		{luascripts.SlidingWindow, []any{"", second, 1, "c", ttl}},
		{luascripts.PeekScript, []any{"", second, 1}},
		{luascripts.GiveBackScript, []any{"", "b", second}},
		{luascripts.ResetScript, nil},
	} {
		if err := step.script.Run(ctx, c, keys, step.args...).Err(); err != nil {
			return err
		}
	}
	return nil
}

// tooOld tells whether a version, such as "7.0.15", is below 6.2; one that cannot be read is not.
func tooOld(version string) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (major < 6 || major == 6 && minor < 2)
}
