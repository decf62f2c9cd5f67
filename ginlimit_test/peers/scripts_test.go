package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// compared runs all scripts once with one more.
func compared(t *testing.T, candidate string) (md string, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "candidate.lua")
	require.NoError(t, os.WriteFile(file, []byte(candidate), 0o600))
	var out bytes.Buffer
	err = report(t.Context(), t, small(t, "-only", "scripts", "-script", file), &out, io.Discard)
	return out.String(), err
}

func TestScriptReport(t *testing.T) {
	ours, err := os.ReadFile(filepath.Join(scriptFolder, "sliding_window.lua"))
	require.NoError(t, err)
	md, err := compared(t, string(ours))
	require.NoError(t, err, "every verdict is the right one")
	require.Contains(t, md, "\n| candidate.lua, server's clock | ")
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

// Where entries leave, every visit lets exactly one leave, as long as there are any.
func TestOneEntryLeavesEachVisit(t *testing.T) {
	w := window{60, leaving}
	for visit := range w.limit - 1 {
		require.Equal(t, spacing, scriptWindow(w, visit)-scriptWindow(w, visit+1), visit)
		require.Greater(t, scriptWindow(w, visit), time.Second, visit)
	}
}
