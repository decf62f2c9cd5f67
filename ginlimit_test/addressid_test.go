package ginlimit_test

import (
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/tiers"
)

// The tests' own address, as the id of its callers and of a user of that name, and both as they stand in
// keys.
const (
	ownAddress    = "ip/127.0.0.1"
	userOfAddress = "ip%2F127.0.0.1"
	addressKey    = "ratelimit:ip/127.0.0.1:60"
	userKey       = "ratelimit:ip%252F127.0.0.1:60"
)

// userElse resolves the user of the header. If there is none, the other resolver decides.
func userElse(other ginlimit.TierResolver) ginlimit.TierResolver {
	return ginlimit.TierResolverFunc(func(c *gin.Context) (ginlimit.Subject, error) {
		if user := c.GetHeader(headerUser); user != "" {
			return ginlimit.Subject{UserID: user, Tier: tiers.Free}, nil
		}
		return other.ResolveTier(c)
	})
}

// Case R31: a user who has the name of an address does not meet the callers from there.
func TestUserNamedLikeAnAddress(t *testing.T) {
	byIP := ginlimit.ByClientIP(tiers.Free)
	asked := func(then func(c *gin.Context, address ginlimit.Subject) ginlimit.Subject) ginlimit.TierResolver {
		return ginlimit.TierResolverFunc(func(c *gin.Context) (ginlimit.Subject, error) {
			address, err := byIP.ResolveTier(c)
			if err != nil {
				return ginlimit.Subject{}, err
			}
			return then(c, address), nil
		})
	}
	for name, tt := range map[string]struct {
		resolver ginlimit.TierResolver
		user     string
		want     string
	}{
		"a user":                     {userElse(byIP), ownAddress, userKey},
		"a user, by FromContext":     {resolver, ownAddress, userKey},
		"a user of another address":  {userElse(byIP), "ip/9.9.9.9", "ratelimit:ip%252F9.9.9.9:60"},
		"a user named as if escaped": {userElse(byIP), userOfAddress, "ratelimit:ip%25252F127.0.0.1:60"},
		"a user named ip":            {userElse(byIP), "ip", "ratelimit:ip:60"},
		"nobody":                     {userElse(byIP), "", addressKey},
		"nobody, behind two wrappers": {userElse(userElse(byIP)), "",
			addressKey},
		"an address on another tier": {asked(func(_ *gin.Context, address ginlimit.Subject) ginlimit.Subject {
			return ginlimit.Subject{UserID: address.UserID, Tier: tiers.Pro}
		}), "", addressKey},
		"the first of two that were asked": {asked(func(c *gin.Context, address ginlimit.Subject) ginlimit.Subject {
			_, _ = ginlimit.ByClientIP(tiers.Pro).ResolveTier(c)
			return address
		}), "", addressKey},
		"a user, whose address was asked too": {asked(func(c *gin.Context, _ ginlimit.Subject) ginlimit.Subject {
			return ginlimit.Subject{UserID: c.GetHeader(headerUser), Tier: tiers.Free}
		}), ownAddress, userKey},
		"part of an address": {asked(func(_ *gin.Context, address ginlimit.Subject) ginlimit.Subject {
			return ginlimit.Subject{UserID: address.UserID[:len(address.UserID)-1], Tier: tiers.Free}
		}), "", "ratelimit:ip%252F127.0.0.:60"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := redistest.Start(t)
			rdb := srv.Client(t)
			api := serve(t, ginlimit.New(ginlimit.NewLimiter(rdb), tt.resolver))
			require.Equal(t, http.StatusOK, api.as(tt.user).StatusCode)
			require.Equal(t, []string{tt.want}, rdb.Keys(t.Context(), "*:60").Val())
		})
	}
}

// Case R31: an address that a limiter has resolved says nothing of the user whom the next one resolves.
func TestUserNamedLikeAnAddressBehindItsLimiter(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	l, limits := ginlimit.NewLimiter(rdb), ginlimit.WithTiers(table(t, 1, 1))
	byIP := ginlimit.ByClientIP(tiers.Free)
	api := serve(t,
		ginlimit.New(l, byIP, limits),
		func(c *gin.Context) { _, _ = byIP.ResolveTier(c) },
		ginlimit.New(l, userElse(byIP), limits))
	require.Equal(t, http.StatusOK, api.as(ownAddress).StatusCode)
	require.EqualValues(t, 1, rdb.ZCard(t.Context(), addressKey).Val())
	require.EqualValues(t, 1, rdb.ZCard(t.Context(), userKey).Val())
}

// Case R31: how an operator resets one or the other.
func TestResetOfAddressesAndUsersNamedLikeThem(t *testing.T) {
	l := ginlimit.NewMemoryLimiter()
	anybody := userElse(ginlimit.ByClientIP(tiers.Free))
	api := serve(t, ginlimit.New(l, anybody, ginlimit.WithTiers(table(t, 1, 1))))
	status := func(user string) int { return api.as(user).StatusCode }
	for _, user := range []string{"", ownAddress} {
		require.Equal(t, http.StatusOK, status(user))
		require.Equal(t, http.StatusTooManyRequests, status(user))
	}
	require.NoError(t, l.Reset(t.Context(), ownAddress))
	require.Equal(t, http.StatusTooManyRequests, status(ownAddress), "the user is another one")
	require.Equal(t, http.StatusOK, status(""))
	require.NoError(t, l.Reset(t.Context(), userOfAddress))
	require.Equal(t, http.StatusTooManyRequests, status(""), "the address is another one")
	require.Equal(t, http.StatusOK, status(ownAddress))
}
