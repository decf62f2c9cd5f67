package ginlimit

import (
	"fmt"
	"log/slog"
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/clientaddr"
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
		addr, warning, err := clientaddr.Of(c)
		if warning != "" {
			warned.Do(func() { slog.WarnContext(c.Request.Context(), warning) })
		}
		if err != nil {
			return Subject{}, fmt.Errorf("ginlimit: client address: %w", err)
		}
		return Subject{UserID: markAddressID(c, addressPrefix+clientaddr.Block(addr)), Tier: t}, nil
	})
}
