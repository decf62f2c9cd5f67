package chaos

import (
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

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
	{name: "latency of 20 ms", bound: nothing, inject: byToxicRoad("latency", "downstream", map[string]int{"latency": 20})},
	{name: "latency of 300 ms", bound: nothing, inject: byToxicRoad("latency", "downstream", map[string]int{"latency": 300})},
	{name: "connections reset", bound: nothing, inject: byToxicRoad("reset_peer", "downstream", map[string]int{"timeout": 0})},
	{name: "black hole, connections accepted", bound: nothing, inject: byToxicRoad("timeout", "upstream", map[string]int{"timeout": 0})},
	{name: "black hole, SYN dropped", bound: nothing,
		inject: func(r *run) {
			srv := redistest.Start(r.T)
			road := newRoad(r.T, srv.Addr)
			r.onServer(srv, road.Addr, "")
			r.inflict(func() { road.block(r.T) }, 1500*time.Millisecond)
			r.heal(func() { road.unblock(r.T) })
		}},
	{name: "connection pool exhausted", bound: nothing,
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
func byToxicRoad(kind, stream string, attributes map[string]int) func(*run) {
	return func(r *run) {
		srv := redistest.Start(r.T)
		road := newToxicRoad(r.T, srv.Addr)
		r.onServer(srv, road.Addr, "")
		r.inflict(func() { road.poison(r.T, kind, stream, attributes) }, 1200*time.Millisecond)
		r.heal(func() { road.cure(r.T) })
	}
}
