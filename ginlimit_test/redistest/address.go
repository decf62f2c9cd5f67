package redistest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// freeAddr is a loopback address whose port P is free, and P+10000 too, where a Cluster node listens for the
// others. Both stay below the ports that Linux hands out (from 32768): no client connection takes them while
// a server is down.
func freeAddr(tb testing.TB) string {
	tb.Helper()
	for range 100 {
		port := 10_000 + rand.IntN(12_000)
		if free(port) && free(port+10_000) {
			return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		}
	}
	tb.Fatal("redistest: no free loopback port")
	return ""
}

func free(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	return err == nil && l.Close() == nil
}

// hostPort splits the server's address.
func (s *Server) hostPort() (host, port string) {
	host, port, err := net.SplitHostPort(s.Addr)
	s.must(err, "address")
	return host, port
}

func addrs(servers []*Server) []string {
	var addrs []string
	for _, s := range servers {
		addrs = append(addrs, s.Addr)
	}
	return addrs
}
