package main

import (
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
)

// -h shows every variable that the app reads, and no other.
func TestSettingsAreShown(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	read := map[string]bool{ginlimit.DisabledEnv: true, "LOG_FORMAT": true} // which run does not read
	_, err := loadConfig(func(name string) string {
		mu.Lock()
		defer mu.Unlock()
		read[name] = true
		return ""
	})
	require.NoError(t, err)
	shown := map[string]bool{}
	var help strings.Builder
	done, err := readArguments([]string{"-h"}, &help)
	require.NoError(t, err)
	require.True(t, done)
	for _, s := range settings() {
		shown[s.name] = true
		require.Regexp(t, `(?m)^  `+s.name+` .*`, help.String())
		require.NotEmpty(t, s.meaning+s.byDefault)
	}
	require.Equal(t, read, shown)
	for line := range strings.Lines(help.String()) {
		require.LessOrEqual(t, len(line), 120, line)
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	done, err := readArguments([]string{"-version"}, &out)
	require.NoError(t, err)
	require.True(t, done)
	require.Regexp(t, `^example_app \S.* go1\.\d+\S*\n$`, out.String())

	done, err = readArguments(nil, io.Discard)
	require.NoError(t, err)
	require.False(t, done)
	for _, args := range [][]string{{"-x"}, {"serve"}, {"-version=7"}} {
		done, err := readArguments(args, io.Discard)
		require.Error(t, err, args)
		require.False(t, done)
		require.NotContains(t, err.Error(), "\n")
	}
}
