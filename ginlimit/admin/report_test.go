package admin

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
)

// Every budget of a tier is shown under the name that the limiter's headers give it.
func TestReport(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	text, err := json.Marshal(NewReport(ginlimit.Subject{UserID: "me", Tier: "gold"}, []ginlimit.Decision{
		{Window: time.Minute, Limit: 5, Remaining: 2, Allowed: true},
		{Window: hour, Limit: 10, Remaining: 0, RetryAfter: 90*time.Second + time.Millisecond},
		{Window: 24 * hour, Limit: 10, Remaining: 10, Allowed: true},
		{Window: 720 * hour, Limit: 10, Remaining: 9, Allowed: true},
		{Window: time.Minute, Budget: "tokens", Limit: 100, Remaining: 40, Allowed: true},
		{Window: 720 * hour, Budget: "spend", Limit: 2_500_000, Remaining: 1_250_001, Allowed: true},
		{Budget: "concurrent", Limit: 2, Remaining: 1, Allowed: true},
	}))
	require.NoError(t, err)
	require.JSONEq(t, `{"object":"usage","user":"me","tier":"gold","budgets":[
		{"window":"minute","limit":5,"used":3,"remaining":2,"retry_after":0},
		{"window":"hour","limit":10,"used":10,"remaining":0,"retry_after":91},
		{"window":"day","limit":10,"used":0,"remaining":10,"retry_after":0},
		{"window":"month","limit":10,"used":1,"remaining":9,"retry_after":0},
		{"window":"tokens-minute","limit":100,"used":60,"remaining":40,"retry_after":0},
		{"window":"spend-month","limit":2.5,"used":1.249999,"remaining":1.250001,"retry_after":0},
		{"window":"concurrent","limit":2,"used":1,"remaining":1,"retry_after":0}]}`, string(text))

	text, err = json.Marshal(NewReport(ginlimit.Subject{UserID: "me", Tier: "gold"}, nil))
	require.NoError(t, err)
	require.JSONEq(t, `{"object":"usage","user":"me","tier":"gold","budgets":[]}`, string(text))
}
