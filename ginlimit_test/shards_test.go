package ginlimit_test

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/redisclient"
	"github.com/gin-tiers/ratelimit/ginlimit_test/faulttest"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// shards is a Cluster of three masters that goes on when one of them does not: each serves its slots.
type shards struct {
	*redistest.Cluster
	admin *redis.ClusterClient
}

func startShards(t *testing.T) *shards {
	t.Helper()
	s := &shards{Cluster: redistest.StartCluster(t, 3, 0)} // by default a Cluster serves all slots or none
	for _, node := range s.Nodes {
		require.NoError(t, node.Client(t).ConfigSet(t.Context(), "cluster-require-full-coverage", "no").Err())
	}
	s.admin = s.Client(t)
	return s
}

// user is an id whose keys are on a node.
func (s *shards) user(t *testing.T, node *redistest.Server) string {
	t.Helper()
	for {
		id := redistest.ID(t)
		master, err := s.admin.MasterForKey(t.Context(), "{"+id+"}")
		require.NoError(t, err)
		if master.Options().Addr == node.Addr {
			return id
		}
	}
}

func clusterClient(t *testing.T, c *redistest.Cluster) redis.UniversalClient {
	t.Helper()
	rdb, err := redisclient.New(c.Addrs()...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// serviceOnShards is a service whose limit is three a minute, and what Redis said to its users.
type serviceOnShards struct {
	*api
	policy string
	mu     sync.Mutex
	told   map[string][]ginlimit.Event // by user
}

type shardUserKey struct{}

func serveOnShards(t *testing.T, rdb redis.Scripter, policy string,
	opts ...ginlimit.Option) *serviceOnShards {
	t.Helper()
	s := &serviceOnShards{policy: policy, told: map[string][]ginlimit.Event{}}
	observe := func(ctx context.Context, e ginlimit.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		user := ctx.Value(shardUserKey{}).(string)
		s.told[user] = append(s.told[user], e)
	}
	opts = append(opts, ginlimit.WithTiers(table(t, 3, 9)), ginlimit.WithFailurePolicy(policies[policy].of),
		ginlimit.WithObserver(ginlimit.ObserverFunc(observe)))
	s.api = serve(t, func(c *gin.Context) {
		named := context.WithValue(c.Request.Context(), shardUserKey{}, c.GetHeader(headerUser))
		c.Request = c.Request.WithContext(named)
	}, ginlimit.New(ginlimit.NewLimiter(rdb, ginlimit.WithTimeout(ginlimit.DefaultTimeout)), resolver, opts...))
	return s
}

// failures are how often Redis did not decide for a user.
func (s *serviceOnShards) failures(user string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.told[user] {
		if e.Err != nil {
			n++
		}
	}
	return n
}

// lastError is why Redis last did not decide for a user.
func (s *serviceOnShards) lastError(user string) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.told[user] {
		if e.Err != nil {
			err = e.Err
		}
	}
	return err
}

// hammer calls as a user from ten places at once until stopped.
func (s *serviceOnShards) hammer(t *testing.T, user string) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for range 10 {
		callers.Go(func() {
			for ctx.Err() == nil {
				s.as(user)
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	return func() {
		cancel()
		callers.Wait()
	}
}

// requireDecided calls as a user, seldom: Redis decides each call, but for those for which this
// machine had no time.
func (s *serviceOnShards) requireDecided(t *testing.T, lag *faulttest.Lag, user string) {
	admitted := 0
	for range 6 {
		time.Sleep(100 * time.Millisecond) // a breaker has time to open between two calls
		before, call := s.failures(user), time.Now()
		status := s.as(user).StatusCode
		d := faulttest.Since(call)
		switch {
		case s.failures(user) > before:
			if lag.During(d) < faulttest.Computing {
				t.Errorf("Redis did not decide: status %d after %v: %v", status, d.Length(), s.lastError(user))
			}
		case status == http.StatusOK:
			admitted++
		}
	}
	if admitted > 3 {
		t.Errorf("%d admitted, limit 3", admitted)
	}
}

// Trouble of a slot or of a node is its own: users of other masters are decided by Redis all along, whatever
// happens elsewhere, and none of them is unlimited. Those in trouble get the failure policy. R37, R38.
func TestTroubleOfOneNodeIsItsOwn(t *testing.T) {
	captureLogs(t)
	lag := faulttest.MeasureLag(t)
	s := startShards(t)
	sick := s.Nodes[0]
	services := map[string]*serviceOnShards{
		"separate, FailClosed": serveOnShards(t, clusterClient(t, s.Cluster), "FailClosed"),
		"atomic, FailOpen": serveOnShards(t, clusterClient(t, s.Cluster), "FailOpen",
			ginlimit.WithAtomicWindows()),
		"go-redis's defaults, FailLocal": serveOnShards(t, s.Client(t), "FailLocal"),
	}
	for _, service := range services { // all clients know all nodes
		for _, node := range s.Nodes {
			user := s.user(t, node)
			decides := func() bool {
				before := service.failures(user)
				return service.as(user).StatusCode != 0 && service.failures(user) == before
			}
			require.Eventually(t, decides, 10*time.Second, time.Millisecond)
		}
	}
	for _, trouble := range []struct {
		name  string
		begin func(t *testing.T, user string)
		fails bool // for the user whom it concerns
	}{
		{"a slot on the move", func(t *testing.T, user string) { s.halfMove(t, user, "60") }, false},
		{"a slot without a master", s.dropSlot, true},
		{"a master hung", func(*testing.T, string) { sick.Pause() }, true},
		{"a master killed", func(*testing.T, string) { sick.Kill() }, true},
	} {
		victim := s.user(t, sick)
		for _, service := range services {
			service.as(victim)
		}
		trouble.begin(t, victim)
		for name, service := range services {
			t.Run(trouble.name+", "+name, func(t *testing.T) {
				stop := service.hammer(t, victim)
				defer stop()
				var elsewhere sync.WaitGroup
				for _, node := range s.Nodes[1:] {
					user := s.user(t, node)
					elsewhere.Go(func() { service.requireDecided(t, lag, user) })
				}
				elsewhere.Wait()
				if trouble.fails {
					require.Positive(t, service.failures(victim))
					service.requirePolicy(t, service.as(victim))
				}
			})
		}
	}
}

// requirePolicy asserts that the failure policy has decided.
func (s *serviceOnShards) requirePolicy(t *testing.T, r answer) {
	t.Helper()
	switch s.policy {
	case "FailOpen":
		require.Equal(t, http.StatusOK, r.StatusCode)
		require.Empty(t, r.Header.Values(ginlimit.HeaderLimit))
	case "FailClosed":
		require.Equal(t, "rate_limiter_unavailable", r.apiError(t).Code)
	case "FailLocal":
		require.Equal(t, http.StatusTooManyRequests, r.StatusCode, "it has had its three")
	}
}

// halfMove begins to move the slot of a user's keys to another master, and moves those of these windows.
func (s *shards) halfMove(t *testing.T, user string, windows ...string) {
	t.Helper()
	from := s.MasterOf(t, "{"+user+"}")
	to := s.Nodes[1]
	if from == to {
		to = s.Nodes[2]
	}
	src, dst := from.Client(t), to.Client(t)
	slot := src.ClusterKeySlot(t.Context(), "{"+user+"}").Val()
	id := func(c *redis.Client) string {
		id, err := c.Do(t.Context(), "cluster", "myid").Text()
		require.NoError(t, err)
		return id
	}
	require.NoError(t, dst.Do(t.Context(), "cluster", "setslot", slot, "importing", id(src)).Err())
	require.NoError(t, src.Do(t.Context(), "cluster", "setslot", slot, "migrating", id(dst)).Err())
	host, port, err := net.SplitHostPort(to.Addr)
	require.NoError(t, err)
	for _, window := range windows {
		moved := src.Migrate(t.Context(), host, port, "ratelimit:{"+user+"}:"+window, 0, time.Second)
		require.Equal(t, "OK", moved.Val(), moved.Err())
	}
}

// dropSlot takes the slot of a user's keys from its master, and gives it to none.
func (s *shards) dropSlot(t *testing.T, user string) {
	t.Helper()
	slot := int(s.admin.ClusterKeySlot(t.Context(), "{"+user+"}").Val())
	s.MasterOf(t, "{"+user+"}").Client(t).ClusterDelSlots(t.Context(), slot)
	for _, node := range s.Nodes {
		_ = node.Client(t).ClusterDelSlots(t.Context(), slot).Err() // which one that has heard of it refuses
	}
	require.Eventually(t, func() bool {
		err := s.admin.Get(t.Context(), "{"+user+"}").Err()
		return redis.HasErrorPrefix(err, "CLUSTERDOWN Hash slot not served")
	}, 5*time.Second, time.Millisecond)
}
