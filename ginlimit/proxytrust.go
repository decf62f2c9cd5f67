package ginlimit

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/gin-gonic/gin"
)

// proxyTrust asks a Gin engine whom it believes. The engine tells that to nobody but by ClientIP, so it is
// asked by requests that never were.
type proxyTrust struct{ probe *gin.Context }

func trustOf(c *gin.Context) proxyTrust { return proxyTrust{c.Copy()} }

// peersOfNobody are addresses that no deployment names as its proxies all together, by family: documentation
// and discard-only networks (RFC 5737, RFC 3849, RFC 9637, RFC 6666).
var peersOfNobody = [2][]string{
	{"192.0.2.1:1", "198.51.100.1:1", "203.0.113.1:1"},
	{"[2001:db8::1]:1", "[3fff::1]:1", "[100::1]:1"},
}

// probeEntry is forwarded by them. It differs from all of their addresses.
const probeEntry = "192.0.2.77"

// everyProxy tells whether the engine believes these headers, or some of them, whoever sends them. A platform
// header, which Gin does believe so, was chosen by the engine's owner and does not count: Gin believes it
// even where the peer has no address.
func (t proxyTrust) everyProxy(sent forwarded) bool {
	header := make(http.Header, len(sent))
	for _, h := range sent {
		header[h.name] = []string{probeEntry}
	}
	believes := func(peer string) bool { return t.clientIP(context.Background(), peer, header) == probeEntry }
	if believes("") {
		return false
	}
	for _, family := range peersOfNobody {
		all := true
		for _, peer := range family {
			all = all && believes(peer)
		}
		if all {
			return true
		}
	}
	return false
}

// clientAddr is the client's address of a request from remote with this header, as the engine finds it. ctx
// is the request's, in which Gin looks for a listener on a Unix socket.
func (t proxyTrust) clientAddr(ctx context.Context, remote string, h http.Header) (netip.Addr, bool) {
	if isUnixPeer(remote) {
		ctx = context.WithValue(ctx, http.LocalAddrContextKey, net.Addr(&net.UnixAddr{Net: "unix"}))
	}
	found := t.clientIP(ctx, remote, h)
	// Of a platform header Gin returns all there is.
	addr, err := netip.ParseAddr(found[strings.LastIndexByte(found, ',')+1:])
	return addr, err == nil
}

func (t proxyTrust) clientIP(ctx context.Context, remote string, h http.Header) string {
	t.probe.Request = (&http.Request{Header: h, RemoteAddr: remote}).WithContext(ctx)
	return t.probe.ClientIP()
}
