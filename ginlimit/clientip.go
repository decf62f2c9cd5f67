package ginlimit

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/tiers"
)

// ByClientIP resolves anonymous callers by their address, all on one tier. An IPv4 address is an
// id of its own ("ip/203.0.113.7"); an IPv6 caller owns at least a /64, so that is the id
// ("ip/2001:db8::/64"). IPv4-mapped IPv6 addresses count as IPv4.
//
// The id belongs to its request. A resolver may hand it on ("the user, else the address"), with another tier
// too, but must not keep it: see TierResolver for ids that only look like it.
//
// The address is Gin's: tell the engine its proxies with SetTrustedProxies, or its platform header
// with TrustedPlatform. While Gin trusts every proxy, as it does by default, anybody could send a
// new X-Forwarded-For each time, so forwarded headers are then not believed: the peer's address
// counts, and a warning is logged once.
func ByClientIP(t tiers.Tier) TierResolver {
	var warnOnce sync.Once
	return TierResolverFunc(func(c *gin.Context) (Subject, error) {
		addr, err := parseAddr(c.Request.RemoteAddr)
		if forwarded, ok := forwardedAddr(c); ok && forwarded != addr {
			// A peer without an address came over a Unix socket, which no stranger reaches.
			if err != nil || !trustsEveryProxy(c) {
				addr, err = forwarded, nil
			} else {
				warnOnce.Do(func() {
					slog.Warn("ginlimit: Gin trusts every proxy, so forwarded client addresses are ignored; call SetTrustedProxies")
				})
			}
		}
		if err != nil {
			return Subject{}, fmt.Errorf("ginlimit: client address: %w", err)
		}
		return Subject{UserID: markAddressID(c, addressPrefix+addressBlock(addr)), Tier: t}, nil
	})
}

// parseAddr parses the address of a connection or of a header, with a port or without.
func parseAddr(remote string) (netip.Addr, error) {
	remote = strings.TrimSpace(remote)
	if ap, err := netip.ParseAddrPort(remote); err == nil {
		return ap.Addr(), nil
	}
	return netip.ParseAddr(strings.Trim(remote, "[]"))
}

func forwardedAddr(c *gin.Context) (netip.Addr, bool) {
	addr, err := parseAddr(c.ClientIP())
	return addr, err == nil
}

// addressBlock is what one caller owns: an IPv4 address or an IPv6 /64.
func addressBlock(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	if addr.Is4() {
		return addr.String()
	}
	return netip.PrefixFrom(addr, 64).Masked().String()
}

// Peers that no deployment names as its proxies all together: documentation and discard-only
// networks (RFC 5737, RFC 3849, RFC 9637, RFC 6666).
var strangers = [2][]string{
	{"192.0.2.1:1", "198.51.100.1:1", "203.0.113.1:1"},
	{"[2001:db8::1]:1", "[3fff::1]:1", "[100::1]:1"},
}

// trustsEveryProxy tells whether Gin would believe the forwarded headers of this request from
// strangers too. A platform header, which Gin believes whoever sends it, was chosen by its owner
// and does not count: it is believed even where the peer has no address.
func trustsEveryProxy(c *gin.Context) bool {
	if believes(c, "") {
		return false
	}
	for _, family := range strangers {
		all := true
		for _, peer := range family {
			all = all && believes(c, peer)
		}
		if all {
			return true
		}
	}
	return false
}

// believes asks Gin, by a copy of the request, whether its headers outweigh that peer address.
func believes(c *gin.Context, peer string) bool {
	probe := c.Copy()
	probe.Request = &http.Request{Header: c.Request.Header, RemoteAddr: peer}
	got, ok := forwardedAddr(probe)
	own, err := parseAddr(peer)
	return ok && (err != nil || got != own)
}
