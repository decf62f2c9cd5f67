package luascripts_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Some servers of Redis's protocol run Lua 5.4, and answer TIME with integers. There a float is not a number
// of '%d', and '#' takes no integer. Every script gives the same replies under either Lua. R10.
//
// No such server is at hand, so the interpreter runs the scripts on a stand-in for redis.call.
func TestLua54(t *testing.T) {
	lua, err := exec.LookPath("lua5.4")
	if err != nil {
		if os.Getenv("RATELIMIT_TEST_REQUIRE_REDIS") == "1" {
			t.Fatal("needs lua5.4: ", err)
		}
		t.Skip("needs lua5.4: ", err)
	}
	script := func(files ...string) string {
		var text strings.Builder
		for _, file := range files {
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			text.Write(source)
		}
		return text.String()
	}
	stub, err := os.ReadFile("testdata/redis.lua")
	require.NoError(t, err)
	for name, tt := range map[string]struct{ script, log, keys, argv, want string }{
		"admitted": {script("clock.lua", "decide.lua", "sliding_window.lua"), `{}`, `{'k'}`,
			`{'', '60000', '2', 'm', '61'}`, "1 1 0"},
		"two windows": {script("clock.lua", "decide.lua", "sliding_window.lua"), `{}`, `{'k', 'd'}`,
			`{'', '60000', '2', 'm', '61', '86400000', '5', '86401'}`, "1 1 0 1 1 0"},
		"rejected": {script("clock.lua", "decide.lua", "sliding_window.lua"), `{a = 1732883722000}`, `{'k'}`,
			`{'', '60000', '1', 'm', '61'}`, "0 1 59877"},
		"rejected under a lowered limit": {script("clock.lua", "decide.lua", "sliding_window.lua"),
			`{a = 1732883721000, b = 1732883722000}`, `{'k'}`, `{'', '60000', '1', 'm', '61'}`, "0 2 59877"},
		"rejected by an entry of the future": {script("clock.lua", "decide.lua", "sliding_window.lua"),
			`{a = 1732887322000}`, `{'k'}`, `{'', '60000', '1', 'm', '61'}`, "0 1 60000"},
		"a group": {script("clock.lua", "decide.lua", "group.lua"), `{}`, `{'k', 'k', 'd'}`,
			`{'', '1', '60000', '2', 'm', '61', '2', '60000', '1', 'n', '61', '86400000', '5', '86401'}`,
			"1 1 0 | 0 1 60000"},
		"all forms": {script("clock.lua", "decide.lua", "sums.lua", "admit.lua"), `{}`, `{'l', 's', 'c'}`,
			`{'', 'm', 'log', '60000', '2', '1', '61', 'sum', '60000', '100', '40', '61',
				'lease', '9000', '3', '1', '0'}`, "1732883722123 1 1 0 1 40 0 1 1 0"},
		"a sum that is too small": {script("clock.lua", "decide.lua", "sums.lua", "admit.lua"), `{}`, `{'l', 's'}`,
			`{'', 'm', 'log', '60000', '2', '1', '61', 'sum', '60000', '100', '101', '61'}`,
			"1732883722123 1 0 0 0 0 -1"},
		"peeked": {script("clock.lua", "sums.lua", "peek.lua"), `{a = 1732883722000}`, `{'k'}`,
			`{'', 'log', '60000', '1'}`, "0 1 59877"},
		"given back": {script("clock.lua", "sums.lua", "finish.lua"), `{a = 1732883722000, m = 1732883722001}`,
			`{'k'}`, `{'', 'm', '0', 'log', '60000', '1', '0', '61'}`, "1"},
	} {
		for _, time := range []string{`{1732883722, 123456}`, `{1732883722, 123000}`, `{'1732883722', '123456'}`} {
			program := fmt.Sprintf("TIME, LOG, KEYS, ARGV = %s, %s, %s, %s\n%s\nreport(function()\n%s\nend)",
				time, tt.log, tt.keys, tt.argv, stub, tt.script)
			out, err := exec.CommandContext(t.Context(), lua, "-e", program).CombinedOutput()
			require.NoError(t, err, "%s: %s", name, out)
			require.Equal(t, tt.want, strings.TrimSpace(string(out)), "%s, TIME %s", name, time)
		}
	}
}
