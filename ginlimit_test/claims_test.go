package ginlimit_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// claimAuth stands for an auth middleware that hands on a claim as encoding/json decodes it.
func claimAuth(c *gin.Context) {
	var claims map[string]any
	if err := json.Unmarshal([]byte(c.GetHeader("Test-Claims")), &claims); err == nil {
		c.Set("user_id", claims["uid"])
	}
}

// Case R12: numeric claims are float64.
func TestNumericClaims(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	api := serve(t, claimAuth, ginlimit.New(ginlimit.NewLimiter(rdb), resolver))
	for claims, key := range map[string]string{
		`{"uid": 8421}`:             "ratelimit:8421:60",
		`{"uid": 8.5e3}`:            "ratelimit:8500:60",
		`{"uid": 9007199254740991}`: "ratelimit:9007199254740991:60",
		`{"uid": "user_8421"}`:      "ratelimit:user_8421:60",
	} {
		require.Equal(t, http.StatusOK, api.get("/v1/chat", "Test-Claims", claims).StatusCode, claims)
		require.EqualValues(t, 1, rdb.ZCard(t.Context(), key).Val(), claims)
	}
	require.Equal(t, http.StatusUnauthorized, api.get("/v1/chat", "Test-Claims", `{"uid": null}`).StatusCode)
}

// Case R12: a number that may stand for two users is refused.
func TestNumericClaimsThatAreNoIDs(t *testing.T) {
	for _, uid := range []string{"1.5", "9007199254740993", "-0.0", "1e300"} {
		claims := `{"uid": ` + uid + `}`
		t.Run(claims, func(t *testing.T) {
			rdb := redistest.Start(t).Client(t)
			logs := captureLogs(t)
			resolver := ginlimit.FromContext("user_id", "tier")
			api := serve(t, claimAuth, ginlimit.New(ginlimit.NewLimiter(rdb), resolver))
			got := api.get("/v1/chat", "Test-Claims", claims)
			require.Equal(t, http.StatusServiceUnavailable, got.StatusCode)
			require.Equal(t, "tier_lookup_failed", got.apiError(t).Code)
			require.NotContains(t, got.body, "user_id")
			require.Contains(t, logs.String(), `user id under \"user_id\": float64 `)
			require.Contains(t, logs.String(), "is no whole number below 2^53")
			require.Zero(t, api.Handled.Load())
			require.Empty(t, rdb.Keys(t.Context(), "*").Val())
		})
	}
}
