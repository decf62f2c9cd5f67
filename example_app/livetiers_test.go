package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit/admin"
	"github.com/gin-tiers/ratelimit/tiers"
)

// limitsOf are the limits of GET /v1/usage, by name.
func (a *app) limitsOf(t *testing.T, key string) map[string]string {
	t.Helper()
	return a.budgets(t, key, func(b admin.Budget) string { return string(b.Limit) })
}

// A changed tier file counts on every route, in the usage, and for operators. A bad one changes nothing.
func TestTierFileThatChanges(t *testing.T) {
	t.Parallel()
	const tiersOf = "tiers:\n  free: {per_minute: %d, per_day: 50, tokens_per_day: 9000}\n" +
		"  pro: {per_minute: 60, per_day: 5000}\n"
	path := tierFile(t, fmt.Sprintf(tiersOf, 3))
	write := func(text string) {
		require.NoError(t, os.WriteFile(path+".new", []byte(text), 0o600))
		require.NoError(t, os.Rename(path+".new", path))
	}
	a := start(t, env{"TIERS_FILE": path, "API_KEYS": freeKey + "=user_free:free," + proKey + "=user_pro:pro",
		"ADMIN_TOKEN": "operator"})
	soon := func(perMinute string) {
		require.Eventually(t, func() bool { return a.limitsOf(t, freeKey)["minute"] == perMinute }, 10*time.Second,
			10*time.Millisecond)
	}
	header := func(route string) string {
		return a.sendRoute(t, route, freeKey).header.Get("X-RateLimit-Limit")
	}
	require.Equal(t, "3", header("GET /v1/models"))
	require.Equal(t, "3", a.chat(t, freeKey, "hello", "").header.Get("X-RateLimit-Limit"))

	write(fmt.Sprintf(tiersOf, 8))
	soon("8")
	require.Equal(t, "8", header("GET /v1/models"))
	require.Equal(t, "8", a.chat(t, freeKey, "hello", "").header.Get("X-RateLimit-Limit"))

	for _, bad := range []string{
		"tiers: {free: {per_minute: 9, per_day: 50}}\n", // no tier pro, which a key has
		"tiers: {free: {per_minute: nine, per_day: 50}}\n",
	} {
		write(bad)
	}
	write(fmt.Sprintf(tiersOf, 8) +
		"overrides:\n  user_free: {per_minute: 20, per_day: 50, tokens_per_day: 7000, " +
		"until: 2999-01-01T00:00:00Z}\n")
	soon("20")
	overridden := map[string]string{"minute": "20", "day": "50", "tokens-day": "7000"}
	require.Equal(t, overridden, a.limitsOf(t, freeKey))
	require.Equal(t, "20", header("GET /v1/models"))
	require.Contains(t, a.send(t, "GET", "/admin/usage?user=user_free&tier=free", "operator", "").body,
		`"window":"minute","limit":20`)

	write(fmt.Sprintf(tiersOf, 8) + "deny: [user_free]\n")
	soon("8")
	for _, route := range []string{"GET /v1/models", "POST /v1/chat/completions", "GET /v1/none"} {
		a.sendRoute(t, route, freeKey).wantError(t, http.StatusForbidden, "permission_error", nil, "user_denied")
	}
	require.Equal(t, http.StatusOK, a.send(t, "GET", "/v1/models", proKey, "").status)
}

// What the other settings need of a table is looked at again when the file changes.
func TestNeedsOfATierFile(t *testing.T) {
	t.Parallel()
	path := tierFile(t, "tiers: {free: {per_minute: 3, per_day: 5}, pro: {per_minute: 3, per_day: 5}}\n")
	settings := env{"TIERS_FILE": path, "API_KEYS": "sk-own=me:free",
		"UPSTREAM_BASE_URL": "http://127.0.0.1:1/v1", "UPSTREAM_PER_MINUTE": "9", "UPSTREAM_SHARES": "pro=0.5"}
	cfg, err := loadConfig(settings.get)
	require.NoError(t, err)
	later := &needs{tiers: cfg.namedTiers(), prices: cfg.prices == nil}
	const numbers = "per_minute: 3, per_day: 5"
	const override = "\noverrides: {me: {N, spend_per_month: 1.00, until: 2999-01-01T00:00:00Z}}"
	for file, want := range map[string]string{
		"tiers: {free: {N}}\n":                              `tier "pro" is missing`,
		"fallback: pro\ntiers: {pro: {N}}\n":                `tier "free" is missing`,
		"tiers: {free: {N, spend_per_day: 1.00}, pro: {N}}": `tier "free" has spend_per_day`,
		"tiers: {free: {N}, pro: {N}}" + override:           `the override of "me" has spend_per_month`,
		"tiers: {free: {N}, pro: {N}}":                      "",
	} {
		file = strings.ReplaceAll(file, "N", numbers)
		table, err := tiers.Load(strings.NewReader(file))
		require.NoError(t, err)
		if want == "" {
			require.NoError(t, later.met(table))
			continue
		}
		require.ErrorContains(t, later.met(table), want)
	}
}
