package ginlimit

import (
	"fmt"
	"log/slog"
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/clientaddr"
	"github.com/gin-tiers/ratelimit/tiers"
)

// ByClientIP resolves anonymous callers by their address, all on one tier. The id of an IPv4 caller is the
// address ("ip/203.0.113.7"). An IPv6 caller owns at least a /64, so the id is that ("ip/2001:db8::/64"). An
// IPv6 address that carries an IPv4 address counts as the IPv4 address: IPv4-mapped, NAT64 with the prefix
// 64:ff9b::/96 (RFC 6052) and 6to4 (RFC 3056). A request without an address is an error, answered with 503.
//
// The id is valid only for its request. Another resolver may return it ("the user, else the address"), even
// with another tier, but must not keep it: see TierResolver for ids that only look like it.
//
// The address is the one that Gin's ClientIP would find: tell the engine its proxies with SetTrustedProxies,
// or its platform header with TrustedPlatform. Forwarded addresses may have brackets and a port; only the
// last 16 entries of a header are read. While Gin trusts every proxy, as it does by default, anybody could
// send a new X-Forwarded-For with each request. Forwarded headers are then ignored, and one warning is
// logged: the peer's address counts. On a Unix socket the peer has no address; there the last forwarded entry
// counts, which the peer itself has appended.
//
// For each request with forwarded addresses it asks the engine which proxies it trusts, so a later
// SetTrustedProxies takes effect at once. That costs some microseconds, however long the headers are.
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
