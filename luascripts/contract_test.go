package luascripts_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/luascripts"
)

// The header of each script names its arguments, in their order, and what is embedded is the file behind
// its preludes. That the store sends them in this order is tested beside it.
func TestHeadersAndScriptsAgree(t *testing.T) {
	clock, decide, sums := read(t, "clock.lua"), read(t, "decide.lua"), read(t, "sums.lua")
	for _, tt := range []struct {
		file    string
		script  *redis.Script
		prelude string
		header  []string // in this order, each once
	}{
		{"sliding_window.lua", luascripts.SlidingWindow, clock + decide, []string{
			`KEYS\[i\]`, `ARGV\[1\] +now_ms`, `ARGV\[2\] +window_ms`, `ARGV\[3\] +limit`, `ARGV\[4\] +member`,
			`ARGV\[5\] +ttl_s`, `ARGV\[6…\] window_ms, limit, ttl_s`}},
		{"group.lua", luascripts.GroupScript, clock + decide, []string{
			`KEYS\[i\]`, `ARGV\[1\] +now_ms`, `ARGV\[2\] +windows`, `ARGV\[3…\] window_ms, limit, member, ttl_s`}},
		{"admit.lua", luascripts.AdmitScript, clock + decide + sums, []string{
			`KEYS\[i\]`, `ARGV\[1\] +now_ms`, `ARGV\[2\] +member`,
			`ARGV\[3…\] form, window_ms, limit, cost, ttl_s`}},
		{"finish.lua", luascripts.FinishScript, clock + sums, []string{
			`KEYS\[i\]`, `ARGV\[1\] +now_ms`, `ARGV\[2\] +member`, `ARGV\[3\] +at_ms`,
			`ARGV\[4…\] form, window_ms, cost, used, ttl_s`}},
		{"renew.lua", luascripts.RenewScript, clock, []string{
			`KEYS\[i\]`, `ARGV\[1\] +now_ms`, `ARGV\[2\] +lease_ms`, `ARGV\[3…\] request id`}},
		{"peek.lua", luascripts.PeekScript, clock + sums, []string{
			`KEYS\[i\]`, `ARGV\[1\] +now_ms`, `ARGV\[2…\] form, window_ms, limit`}},
		{"close.lua", luascripts.CloseScript, "", []string{`KEYS\[1\]`, `ARGV\[1\] +ms`}},
		{"reset.lua", luascripts.ResetScript, "", []string{`KEYS\[i\]`, `ARGV +none`}},
	} {
		text := read(t, tt.file)
		require.Regexp(t, `^-- `+regexp.QuoteMeta(tt.file)+`: `, text)
		header := regexp.MustCompile(`(?m)\A(--.*\n)+`).FindString(text)
		for _, pattern := range append(tt.header, `Reply: `, `.*(O\(.*Redis 6\.2 or newer|Redis 6\.2 or newer)`) {
			loc := regexp.MustCompile(`(?m)^-- ` + pattern).FindStringIndex(header)
			require.NotNil(t, loc, "%s: %s is not in the header, or out of order", tt.file, pattern)
			header = header[loc[1]:]
		}
		require.Equal(t, redis.NewScript(tt.prelude+text).Hash(), tt.script.Hash(),
			"%s is what is embedded", tt.file)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}
