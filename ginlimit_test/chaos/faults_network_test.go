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
		inject: onProxy(time.Second, func(r *run, p *redistest.Proxy) (heal func()) {
			stop := every(5*time.Millisecond, func() { p.DropReplies(2) })
			return func() {
				stop()
				p.Pass()
				require.Greater(r, p.Dropped(), 10)
			}
		})},
	{name: "latency of 20 ms", bound: nothing,
		inject: onProxy(network, func(_ *run, p *redistest.Proxy) func() {
			p.Delay(20 * time.Millisecond)
			return p.Pass
		})},
	{name: "latency of 300 ms", bound: nothing, opens: true,
		inject: onProxy(network, func(_ *run, p *redistest.Proxy) func() {
			p.Delay(300 * time.Millisecond)
			return p.Pass
		})},
	{name: "connections reset", bound: nothing, opens: true,
		inject: onProxy(network, func(_ *run, p *redistest.Proxy) func() {
			p.Reset()
			return p.Pass
		})},
	{name: "black hole, connections accepted", bound: nothing, opens: true,
		inject: onProxy(network, func(_ *run, p *redistest.Proxy) func() {
			p.Swallow()
			return p.Pass
		})},
	{name: "black hole, SYN dropped", bound: nothing, opens: true,
		inject: onProxy(1500*time.Millisecond, func(_ *run, p *redistest.Proxy) func() {
			p.Block()
			return p.Pass
		})},
	{name: "connection pool exhausted", bound: nothing, opens: true,
		inject: func(r *run) {
			srv := redistest.Start(r.T)
			r.onServer(srv, srv.Addr, "?pool_size=2")
			var held []*redis.Conn
			r.inflict(func() {
				for _, s := range r.services {
					for range 2 {
						conn := s.client.(*redis.Client).Conn() // the application's own, for something that does not end
						require.Eventually(r, func() bool { return conn.Ping(r.Context()).Err() == nil }, 10*time.Second,
							time.Millisecond)
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

// network is how long a fault of the network lasts.
const network = 1200 * time.Millisecond

// onProxy is inject for a fault of the way to a server.
func onProxy(lasts time.Duration, begin func(*run, *redistest.Proxy) (heal func())) func(*run) {
	return func(r *run) {
		srv := redistest.Start(r.T)
		proxy := redistest.NewProxy(r.T, srv.Addr)
		r.onServer(srv, proxy.Addr, "")
		var heal func()
		r.inflict(func() { heal = begin(r, proxy) }, lasts)
		r.heal(heal)
	}
}
