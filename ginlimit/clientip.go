package ginlimit

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/tiers"
)

// ByClientIP resolves anonymous callers by their address, all on one tier. An IPv4 address is an id of its
// own ("ip/203.0.113.7"); an IPv6 caller owns at least a /64, so that is the id ("ip/2001:db8::/64"). An IPv6
// address that carries an IPv4 one counts as that: IPv4-mapped, NAT64 with the prefix 64:ff9b::/96 (RFC 6052)
// and 6to4 (RFC 3056). A request without an address is an error, answered with 503.
//
// The id belongs to its request. A resolver may hand it on ("the user, else the address"), with another tier
// too, but must not keep it: see TierResolver for ids that only look like it.
//
// The address is the one that Gin's ClientIP would find: tell the engine its proxies with SetTrustedProxies,
// or its platform header with TrustedPlatform. Forwarded addresses may have brackets and a port, and of a
// header the last 16 entries are read. While Gin trusts every proxy, as it does by default, anybody could
// send a new X-Forwarded-For each time. So forwarded headers are then not believed, and a warning is logged
// once: the peer's address counts, or, on a Unix socket, where the peer has none, the last forwarded entry,
// which the peer itself has appended.
//
// It asks the engine whom it trusts for each request that has forwarded addresses, so a later
// SetTrustedProxies counts at once. That costs some microseconds, however long the headers are.
func ByClientIP(t tiers.Tier) TierResolver {
	var warned sync.Once
	return TierResolverFunc(func(c *gin.Context) (Subject, error) {
		addr, warning, err := clientAddr(c)
		if warning != "" {
			warned.Do(func() { slog.WarnContext(c.Request.Context(), warning) })
		}
		if err != nil {
			return Subject{}, fmt.Errorf("ginlimit: client address: %w", err)
		}
		return Subject{UserID: markAddressID(c, addressPrefix+addressBlock(addr)), Tier: t}, nil
	})
}

const (
	warnIgnored = "ginlimit: Gin trusts every proxy, so forwarded client addresses are ignored; " +
		"call SetTrustedProxies"
	warnLastOnly = "ginlimit: Gin trusts every proxy, so only the last forwarded client address is believed; " +
		"call SetTrustedProxies, with nil if the only proxy is the one on the Unix socket"
)

// clientAddr is the address of the client, and what to warn about.
func clientAddr(c *gin.Context) (addr netip.Addr, warning string, err error) {
	remote := c.Request.RemoteAddr
	addr, err = parseAddr(remote)
	sent := forwardedIn(c.Request.Header)
	if len(sent) == 0 {
		return addr, "", err
	}
	trust := trustOf(c)
	believed := sent.chains()
	if trust.everyProxy(sent) {
		if !isUnixPeer(remote) {
			return addr, warnIgnored, err
		}
		believed, warning = sent.lastEntries(), warnLastOnly
	}
	if forwarded, ok := trust.clientAddr(c.Request.Context(), remote, believed); ok {
		return forwarded, warning, nil
	}
	return addr, "", err
}

// isUnixPeer reports whether a connection's address is that of a Unix socket, which mostly has no name.
func isUnixPeer(remote string) bool {
	return remote == "" || remote[0] == '@' || remote[0] == '/'
}

// parseAddr parses the address of a connection or of a header: with or without a port, brackets, a zone and,
// as in RFC 7239, quotes. Nobody needs the port, so it may be anything.
func parseAddr(s string) (netip.Addr, error) {
	s = strings.Trim(strings.TrimSpace(s), `"`)
	addr, err := netip.ParseAddr(s)
	if err == nil {
		return addr, nil
	}
	if host, _, splitErr := net.SplitHostPort(s); splitErr == nil {
		return netip.ParseAddr(host)
	}
	if inner, ok := strings.CutPrefix(s, "["); ok {
		if inner, ok = strings.CutSuffix(inner, "]"); ok {
			return netip.ParseAddr(inner)
		}
	}
	return netip.Addr{}, err
}

// addressBlock is what one caller owns: an IPv4 address or an IPv6 /64.
func addressBlock(addr netip.Addr) string {
	addr = carriedIPv4(addr.WithZone("").Unmap())
	if addr.Is4() {
		return addr.String()
	}
	return netip.PrefixFrom(addr, 64).Masked().String()
}

// carriedIPv4 returns the IPv4 address inside a NAT64 or 6to4 address, and any other address as it is.
func carriedIPv4(addr netip.Addr) netip.Addr {
	b := addr.As16()
	switch {
	case addr.Is4():
		return addr
	case [12]byte(b[:12]) == [12]byte{0, 0x64, 0xff, 0x9b}: // 64:ff9b::/96
		return netip.AddrFrom4([4]byte(b[12:]))
	case b[0] == 0x20 && b[1] == 0x02: // 2002::/16
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return addr
}
