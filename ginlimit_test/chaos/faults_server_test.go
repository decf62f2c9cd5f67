package chaos

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/faulttest"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// serverFaults befall a server that is reached directly.
var serverFaults = []fault{
	{name: "Redis killed and restarted, nothing persisted", bound: lostAll, opens: true,
		inject: onOneServer(nil, func(_ *run, srv *redistest.Server) func() {
			srv.Kill()
			return srv.Restart
		})},
	{name: "Redis killed and restarted, AOF everysec", bound: lostLastSecond, opens: true,
		inject: onOneServer([]string{"--appendonly", "yes", "--appendfsync", "everysec"},
			func(_ *run, srv *redistest.Server) func() {
				srv.Kill()
				return srv.Restart
			})},
	{name: "SCRIPT FLUSH every 10 ms", bound: nothing,
		inject: onOneServer(nil, func(r *run, srv *redistest.Server) func() {
			admin := srv.Client(r.T)
			return every(10*time.Millisecond, func() { _ = admin.ScriptFlush(context.Background()) })
		})},
	{name: "Redis hung (SIGSTOP)", bound: nothing, opens: true,
		inject: onOneServer(nil, func(_ *run, srv *redistest.Server) func() {
			srv.Pause()
			return srv.Resume
		})},
	{name: "Redis hung, requests with a deadline of 90 ms", bound: nothing, opens: true,
		deadline: 90 * time.Millisecond,
		inject: onOneServer(nil, func(_ *run, srv *redistest.Server) func() {
			srv.Pause()
			return srv.Resume
		})},
	{name: "memory full (noeviction)", bound: nothing,
		inject: onOneServer(nil, func(r *run, srv *redistest.Server) func() {
			admin := srv.Client(r.T)
			require.NoError(r, admin.ConfigSet(r.Context(), "maxmemory", "1mb").Err())
			require.ErrorContains(r, admin.Set(r.Context(), "k", "v", 0).Err(), "OOM")
			return func() { require.NoError(r, admin.ConfigSet(r.Context(), "maxmemory", "0").Err()) }
		})},
	{name: "READONLY: the server was made a replica", bound: nothing, opens: true,
		inject: onOneServer(nil, func(r *run, srv *redistest.Server) func() {
			admin := srv.Client(r.T)
			require.NoError(r, admin.ReplicaOf(r.Context(), "127.0.0.1", "1").Err())
			return func() { require.NoError(r, admin.ReplicaOf(r.Context(), "no", "one").Err()) }
		})},
	{name: "WRONGTYPE: the key of one user", bound: lostAll,
		victims: func(u *user) bool { return u.profile == visitor },
		inject: onOneServer(nil, func(r *run, srv *redistest.Server) func() {
			victim := r.users[nil][0]
			admin, key := srv.Client(r.T), r.key(victim, time.Minute)
			require.NoError(r, admin.Set(r.Context(), key, "text", 0).Err())
			r.load.burst(victim, r.services, 20) // more errors in a row than open a breaker
			return func() { require.NoError(r, admin.Del(r.Context(), key).Err()) }
		}),
		verify: othersAreServed},
	{name: "NOAUTH: a password was set", bound: nothing,
		inject: onOneServer(nil, func(r *run, srv *redistest.Server) func() {
			admin := srv.Client(r.T).Conn() // stays authenticated
			require.NoError(r, admin.ConfigSet(r.Context(), "requirepass", "secret").Err())
			require.NoError(r, admin.ClientKillByFilter(r.Context(), "type", "normal", "skipme", "yes").Err())
			return func() {
				require.NoError(r, admin.ConfigSet(r.Context(), "requirepass", "").Err())
				require.NoError(r, admin.Close())
			}
		})},
	{name: "NOPERM: EVALSHA forbidden", bound: nothing,
		inject: onOneServer(nil, func(r *run, srv *redistest.Server) func() {
			admin := srv.Client(r.T)
			require.NoError(r, admin.ACLSetUser(r.Context(), "default", "-evalsha", "-eval").Err())
			return func() { require.NoError(r, admin.ACLSetUser(r.Context(), "default", "+evalsha", "+eval").Err()) }
		})},
	{name: "BUSY: an endless script", bound: nothing,
		inject: onOneServer([]string{"--busy-reply-threshold", "20"}, func(r *run, srv *redistest.Server) func() {
			busy := redis.NewClient(&redis.Options{Addr: srv.Addr, ReadTimeout: time.Minute, MaxRetries: -1})
			var wg sync.WaitGroup
			wg.Go(func() { _ = busy.Eval(context.Background(), "while true do end", nil).Err() })
			return func() {
				require.NoError(r, srv.Client(r.T).ScriptKill(r.Context()).Err())
				wg.Wait()
				_ = busy.Close()
			}
		})},
	{name: "clock steps forward 61 s (WithClock)", bound: lostAll, inject: byClock(61 * time.Second)},
	{name: "clock steps back 61 s (WithClock)", bound: nothing, inject: byClock(-61 * time.Second)},
}

// othersAreServed asserts that Redis goes on deciding for those whom the fault does not concern: no breaker
// opens, unless a machine that is busy made enough of their decisions fail.
func othersAreServed(r *run) {
	late := 0
	for _, c := range r.during() {
		switch {
		case r.fault.concerns(c.user) || c.byRedis():
		case r.lag.During(c.verdict.decision) > faulttest.Computing:
			late++
		default:
			require.GreaterOrEqual(r, late, 5, "%v", c)
		}
	}
}

// onOneServer is inject for a fault of one server that is reached directly.
func onOneServer(args []string, begin func(*run, *redistest.Server) (heal func())) func(*run) {
	return func(r *run) {
		srv := redistest.Start(r.T, args...)
		r.onServer(srv, srv.Addr, "")
		var heal func()
		r.inflict(func() { heal = begin(r, srv) }, time.Second)
		r.heal(heal)
	}
}

// byClock is inject for a step of the clock of all limiters.
func byClock(step time.Duration) func(*run) {
	return func(r *run) {
		var offset atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }
		srv := redistest.Start(r.T)
		r.onServer(srv, srv.Addr, "", ginlimit.WithClock(now))
		r.inflict(func() { offset.Store(int64(step)) }, time.Second)
		r.heal(func() {})
	}
}
