package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// compared runs all scenarios once with one more script.
func compared(t *testing.T, candidate string) (report string, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "candidate.lua")
	require.NoError(t, os.WriteFile(file, []byte(candidate), 0o600))
	o := small(t)
	o.scripts = []string{file}
	var out bytes.Buffer
	_, err = o.runScripts(t.Context(), t, redistest.Start(t), &out)
	return out.String(), err
}

func TestScriptReport(t *testing.T) {
	ours, err := small(t).ourScript()
	require.NoError(t, err)
	report, err := compared(t, ours)
	require.NoError(t, err, "every verdict is the scenario's")
	for _, s := range scenarios(100) {
		require.Contains(t, report, "### Script: "+s.name)
	}
	require.Equal(t, len(scenarios(100))+1, strings.Count(report, "\n| candidate.lua, server's clock | "))
}

// A script that decides wrongly is not compared, however fast it is.
func TestWrongScriptIsFound(t *testing.T) {
	for name, source := range map[string]string{
		"admits all":  "return {1, 1, 0}",
		"rejects all": "return {0, 1, 1}",
		"keeps old entries": `redis.call('ZADD', KEYS[1], 1, ARGV[4])
			return {redis.call('ZCARD', KEYS[1]) <= tonumber(ARGV[3]) and 1 or 0, 1, 0}`,
		"fails": "return redis.call('NOSUCH')",
	} {
		_, err := compared(t, source)
		require.ErrorContains(t, err, "candidate.lua", name)
	}
}

// Every call of a scenario that has entries leave lets exactly one leave.
func TestOneEntryLeavesEachCall(t *testing.T) {
	for _, s := range scenarios(100) {
		if !s.leaving {
			continue
		}
		last := s.window(0) + spacing
		for call := range visits * s.calls {
			window := s.window(call)
			require.Equal(t, spacing, last-window, "%s, call %d", s.name, call)
			require.Positive(t, window, "%s, call %d", s.name, call)
			last = window
		}
	}
}
