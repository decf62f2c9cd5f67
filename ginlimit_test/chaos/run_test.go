package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/redisclient"
	"github.com/gin-tiers/ratelimit/ginlimit_test/faulttest"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/tiers"
)

// run is one fault, and all that is seen of it.
type run struct {
	*testing.T
	fault   fault
	lag     *faulttest.Lag
	cluster *redistest.Cluster // shared with other runs; nil unless the fault asks for it

	connect func() redis.UniversalClient // as the services do
	options []ginlimit.LimiterOption     // of their limiters
	place   func(*user) bool             // where an id will do; nil is anywhere

	services []*service
	users    map[*service][]*user // nil has those who call all services
	load     *load

	stopProbes func()
	cold       []faulttest.Span // decisions on new connections, during the fault

	began, healed time.Time
	back          map[*service]time.Duration // from healed until Redis decided again
}

// onServer serves on one Redis, by way of addr.
func (r *run) onServer(srv *redistest.Server, addr, query string, opts ...ginlimit.LimiterOption) {
	r.Helper()
	r.serve(srv.Client(r.T), func() redis.UniversalClient {
		c, err := redisclient.New("redis://" + addr + query)
		require.NoError(r, err)
		return c
	}, opts...)
}

// onCluster serves on the Cluster.
func (r *run) onCluster() {
	r.Helper()
	r.serve(r.cluster.Client(r.T), func() redis.UniversalClient {
		c, err := redisclient.New(r.cluster.Addrs()...)
		require.NoError(r, err)
		return c
	})
}

// serve starts the three services and their users, whose past admin writes, and returns once all of them are
// at work.
func (r *run) serve(admin redis.UniversalClient, connect func() redis.UniversalClient,
	opts ...ginlimit.LimiterOption) {
	r.Helper()
	r.connect, r.options = connect, opts
	r.users = map[*service][]*user{}
	for _, p := range policies {
		client := connect()
		r.Cleanup(func() { _ = client.Close() })
		s := newService(r.T, p, client, opts...)
		s.deadline = r.fault.deadline
		r.services = append(r.services, s)
		r.users[s] = []*user{
			r.newUser(free, "/atomic", wide),
			r.newUser(eager, "/atomic", tiers.Free),
			r.newUser(eager, "/separate", tiers.Free),
			r.newUser(full, "/atomic", tiers.Free),
			r.newUser(daily, "/separate", narrow),
		}
	}
	r.users[nil] = []*user{r.newUser(visitor, "/atomic", tiers.Free)}
	for _, users := range r.users {
		for _, u := range users {
			r.remember(admin, u)
		}
	}
	r.load = startLoad(r.T, r.services, r.users)
	time.Sleep(400 * time.Millisecond)
	for _, s := range r.services {
		r.await(func(c *call) bool { return c.service == s && c.byRedis() })
	}
}

func (r *run) newUser(profile, path string, tier tiers.Tier) *user {
	u := &user{profile: profile, path: path, tier: tier, every: 25 * time.Millisecond}
	for u.id == "" || r.place != nil && !r.place(u) {
		u.id = redistest.ID(r)
	}
	return u
}

// key is the user's log of one window.
func (r *run) key(u *user, window time.Duration) string {
	id := u.id
	if _, ok := r.services[0].client.(*redis.ClusterClient); ok {
		id = "{" + id + "}"
	}
	return fmt.Sprintf("ratelimit:%s:%d", id, int(window.Seconds()))
}

// remember gives the user its past: requests that were admitted before the run.
func (r *run) remember(admin redis.UniversalClient, u *user) {
	r.Helper()
	now := time.Now() // the server's clock, too
	past := func(ago time.Duration, windows ...time.Duration) {
		at := now.Add(-ago)
		member := uuid.NewString()
		for _, window := range windows {
			require.NoError(r, admin.ZAdd(r.Context(), r.key(u, window),
				redis.Z{Score: float64(at.UnixMilli()), Member: member}).Err())
			require.NoError(r, admin.Expire(r.Context(), r.key(u, window), window+time.Second).Err())
			if window == time.Minute {
				u.minute = append(u.minute, faulttest.Span{Begin: at, End: at})
			} else {
				u.day = append(u.day, faulttest.Span{Begin: at, End: at})
			}
		}
	}
	for i := range limit {
		switch u.profile {
		case full, visitor: // four leave the minute every second
			past(time.Minute-500*time.Millisecond-time.Duration(i)*250*time.Millisecond, time.Minute, 24*time.Hour)
		case daily:
			past(time.Hour+time.Duration(i)*time.Second, 24*time.Hour)
		}
	}
}

// await waits until there is such a call.
func (r *run) await(wanted func(*call) bool) {
	r.Helper()
	for begin := time.Now(); !r.load.some(wanted); time.Sleep(2 * time.Millisecond) {
		require.Less(r, time.Since(begin), 30*time.Second, "%s: nothing like it is seen", r.fault.name)
	}
}

// inflict begins the fault, which lasts a while.
func (r *run) inflict(fault func(), lasts time.Duration) {
	r.Helper()
	r.began = time.Now()
	fault()
	r.probe()
	time.Sleep(lasts)
}

// probe makes decisions on connections that are new, until stopProbes.
func (r *run) probe() {
	ctx, cancel := context.WithCancel(r.Context())
	var probes sync.WaitGroup
	probes.Go(func() {
		for ctx.Err() == nil {
			client := r.connect()
			limiter := ginlimit.NewLimiter(client, r.options...)
			begin := time.Now()
			_, _ = limiter.Check(context.Background(), redistest.ID(r), limit, time.Minute)
			r.cold = append(r.cold, faulttest.Since(begin))
			_ = client.Close()
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	r.stopProbes = sync.OnceFunc(func() {
		cancel()
		probes.Wait()
	})
	r.Cleanup(r.stopProbes)
}

// heal ends the fault, which is over when cure returns, and waits until limits are enforced again.
func (r *run) heal(cure func()) {
	r.Helper()
	r.stopProbes()
	cure()
	r.healed = time.Now()
	r.back = map[*service]time.Duration{}
	for _, s := range r.services {
		decided := func(c *call) bool { return c.service == s && c.byRedis() && c.sent.After(r.healed) }
		r.await(decided)
		first := r.load.all()[slices.IndexFunc(r.load.all(), decided)]
		r.back[s] = first.back.Sub(r.healed)
	}
	for _, s := range r.services {
		r.await(func(c *call) bool { return c.service == s && c.rejectedByRedis() && c.sent.After(r.healed) })
	}
	time.Sleep(200 * time.Millisecond)
	r.load.stop()
}

// during returns the calls that were sent during the fault.
func (r *run) during() (calls []*call) {
	for _, c := range r.load.all() {
		if !c.sent.Before(r.began) && c.sent.Before(r.healed) {
			calls = append(calls, c)
		}
	}
	return calls
}

// breakerWasOpen tells whether the limiter decided without asking Redis.
func (c *call) breakerWasOpen() bool {
	return errors.Is(c.verdict.err, ginlimit.ErrUnavailable)
}
