package clientaddr

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/gin-gonic/gin"
)

// proxyTrust finds out which proxies a Gin engine trusts. Only ClientIP shows it, so it is called on made-up
// requests.
type proxyTrust struct{ probe *gin.Context }

func trustOf(c *gin.Context) proxyTrust { return proxyTrust{c.Copy()} }

// unlikelyProxies are addresses, by family, in networks for documentation and for discarding (RFC 5737, RFC
// 3849, RFC 9637, RFC 6666). An engine that trusts all of them trusts everybody.
var unlikelyProxies = [2][]string{
	{"192.0.2.1:1", "198.51.100.1:1", "203.0.113.1:1"},
	{"[2001:db8::1]:1", "[3fff::1]:1", "[100::1]:1"},
}

// probeEntry is the address that they forward. None of them has it.
const probeEntry = "192.0.2.77"

// everyProxy reports whether the engine trusts every proxy with one of these headers. A platform header does
// not count: Gin accepts it from anybody, but the engine's owner chose it. Gin accepts it even from a peer
// without an address; that shows which case it is.
func (t proxyTrust) everyProxy(sent forwarded) bool {
	header := make(http.Header, len(sent))
	for _, h := range sent {
		header[h.name] = []string{probeEntry}
	}
	trusts := func(peer string) bool { return t.clientIP(context.Background(), peer, header) == probeEntry }
	if trusts("") {
		return false
	}
	for _, family := range unlikelyProxies {
		all := true
		for _, peer := range family {
			all = all && trusts(peer)
		}
		if all {
			return true
		}
	}
	return false
}

// clientAddr is the client's address that the engine finds for a request from remote with this header. ctx is
// the request's; Gin looks there for a listener on a Unix socket.
func (t proxyTrust) clientAddr(ctx context.Context, remote string, h http.Header) (netip.Addr, bool) {
	if isUnixPeer(remote) {
		ctx = context.WithValue(ctx, http.LocalAddrContextKey, net.Addr(&net.UnixAddr{Net: "unix"}))
	}
	found := t.clientIP(ctx, remote, h)
	// Gin returns a platform header's whole value.
	addr, err := netip.ParseAddr(found[strings.LastIndexByte(found, ',')+1:])
	return addr, err == nil
}

func (t proxyTrust) clientIP(ctx context.Context, remote string, h http.Header) string {
	t.probe.Request = (&http.Request{Header: h, RemoteAddr: remote}).WithContext(ctx)
	return t.probe.ClientIP()
}
