package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// /metrics counts what the limiter decides, by tier and outcome, and names no user and no key.
func TestMetrics(t *testing.T) {
	t.Parallel()
	a := start(t, nil)
	for range 6 {
		a.chat(t, freeKey, "Hello there", "")
	}
	got := a.send(t, "GET", "/metrics", "", "")
	require.Equal(t, 200, got.status)
	require.Regexp(
		t,
		`(?m)^ginlimit_decisions_total\{[^}]*outcome="admitted"[^}]*tier="free"[^}]*\} 5$`,
		got.body,
	)
	require.Regexp(
		t,
		`(?m)^ginlimit_decisions_total\{[^}]*outcome="rejected"[^}]*tier="free"[^}]*\} 1$`,
		got.body,
	)
	require.Contains(t, got.body, "go_goroutines ")
	require.NotContains(t, got.body, "user_free")
	require.NotContains(t, got.body, freeKey)
}
