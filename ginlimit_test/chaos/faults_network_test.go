package chaos

import (
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit_test/faulttest"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// networkFaults befall the way to a server.
var networkFaults = []fault{
	{name: "replies lost", bound: nothing,
		inject: func(r *run) {
			srv := redistest.Start(r.T)
			proxy := redistest.NewProxy(r.T, srv.Addr)
			r.onServer(srv, proxy.Addr, "")
			var stop func()
			r.inflict(func() { stop = every(5*time.Millisecond, func() { proxy.DropReplies(2) }) }, time.Second)
			r.heal(func() {
				stop()
				proxy.DropReplies(0)
			})
			require.Greater(r, proxy.Dropped(), 10)
		}},
	{name: "latency of 20 ms", bound: nothing, inject: byToxicRoad("latency", "downstream", `{"latency": 20}`)},
	{name: "latency of 300 ms", bound: nothing, opens: true, inject: byToxicRoad("latency", "downstream", `{"latency": 300}`)},
	{name: "connections reset", bound: nothing, opens: true, inject: byToxicRoad("reset_peer", "downstream", `{"timeout": 0}`)},
	{name: "black hole, connections accepted", bound: nothing, opens: true,
		inject: byToxicRoad("timeout", "upstream", `{"timeout": 0}`)},
	{name: "black hole, SYN dropped", bound: nothing, opens: true,
		inject: func(r *run) {
			srv := redistest.Start(r.T)
			road := faulttest.NewRoad(r.T, srv.Addr)
			r.onServer(srv, road.Addr, "")
			r.inflict(road.Block, 1500*time.Millisecond)
			r.heal(road.Unblock)
		}},
	{name: "connection pool exhausted", bound: nothing, opens: true,
		inject: func(r *run) {
			srv := redistest.Start(r.T)
			r.onServer(srv, srv.Addr, "?pool_size=2")
			var held []*redis.Conn
			r.inflict(func() {
				for _, s := range r.services {
					for range 2 {
						conn := s.client.(*redis.Client).Conn() // the application's own, for something that does not end
						require.Eventually(r, func() bool { return conn.Ping(r.Context()).Err() == nil }, 10*time.Second, time.Millisecond)
						held = append(held, conn)
					}
				}
			}, time.Second)
			r.heal(func() {
				for _, conn := range held {
					_ = conn.Close()
				}
			})
		}},
}

// byToxicRoad is inject for a toxic.
func byToxicRoad(kind, stream, attributes string) func(*run) {
	return func(r *run) {
		srv := redistest.Start(r.T)
		road := newToxicRoad(r.T, srv.Addr)
		r.onServer(srv, road.Addr, "")
		r.inflict(func() { road.poison(r.T, kind, stream, attributes) }, 1200*time.Millisecond)
		r.heal(func() { road.cure(r.T) })
	}
}
