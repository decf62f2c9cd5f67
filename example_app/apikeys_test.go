package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/tiers"
)

// A table of one's own need not have the tiers of all demo keys.
func TestDemoKeysOfTheTable(t *testing.T) {
	t.Parallel()
	a := start(t, env{"TIERS_FILE": tierFile(t, "tiers: {free: {per_minute: 2, per_day: 3}}")})
	require.Equal(t, 200, a.send(t, "GET", "/v1/models", freeKey, "").status)
	require.Equal(t, 401, a.send(t, "GET", "/v1/models", proKey, "").status)
}

// R45: the tiers whose demo keys are not accepted are told, unless nobody asked for demo keys.
func TestDroppedDemoKeys(t *testing.T) {
	t.Parallel()
	const some = ": {per_minute: 1, per_day: 2}"
	for file, dropped := range map[string][]tiers.Tier{
		"":                          nil,
		"tiers: {free" + some + "}": {"enterprise", "pro"},
		"fallback: pro\ntiers: {pro" + some + ", enterprise" + some + "}": {"free"},
		"fallback: gold\ntiers: {gold" + some + ", pro" + some + "}":      {"enterprise", "free"},
	} {
		settings := env{}
		if file != "" {
			settings["TIERS_FILE"] = tierFile(t, file)
		}
		cfg, err := loadConfig(settings.get)
		require.NoError(t, err)
		require.Equal(t, dropped, cfg.droppedTiers, file)

		settings["API_KEYS"] = "sk-own=me:" + string(cfg.tiers.Store().Fallback())
		cfg, err = loadConfig(settings.get)
		require.NoError(t, err)
		require.Empty(t, cfg.droppedTiers)
	}
}
