// Package clientaddr finds the address that a request comes from. It trusts its headers no more than the Gin
// engine does.
package clientaddr

import (
	"net"
	"net/netip"
	"strings"

	"github.com/gin-gonic/gin"
)

const (
	warnIgnored = "ginlimit: Gin trusts every proxy, so forwarded client addresses are ignored; " +
		"call SetTrustedProxies"
	warnLastOnly = "ginlimit: Gin trusts every proxy, so only the last forwarded client address is believed; " +
		"call SetTrustedProxies, with nil if the only proxy is the one on the Unix socket"
)

// Of returns the address of the client, as Gin's ClientIP would find it, and a warning to log. While Gin
// trusts every proxy, forwarded addresses are ignored, except the last one if the peer is on a Unix socket.
func Of(c *gin.Context) (addr netip.Addr, warning string, err error) {
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

// isUnixPeer reports whether a connection's address is that of a Unix socket, which usually has no name.
func isUnixPeer(remote string) bool {
	return remote == "" || remote[0] == '@' || remote[0] == '/'
}

// parseAddr parses the address of a connection or of a header: with or without a port, brackets, a zone and,
// as in RFC 7239, quotes. The port is not used, so it may be anything.
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

// Block is what one caller owns: an IPv4 address or an IPv6 /64.
func Block(addr netip.Addr) string {
	addr = carriedIPv4(addr.WithZone("").Unmap())
	if addr.Is4() {
		return addr.String()
	}
	return netip.PrefixFrom(addr, 64).Masked().String()
}

// carriedIPv4 returns the IPv4 address inside a NAT64 or 6to4 address, and any other address unchanged.
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
