package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// R15: a comma within a password is not one between URLs.
func TestSplitURLs(t *testing.T) {
	t.Parallel()
	for list, want := range map[string][]string{
		"a:1":                              {"a:1"},
		"a:1,b:2,c:3":                      {"a:1", "b:2", "c:3"},
		"redis://a:1,redis://b:2":          {"redis://a:1", "redis://b:2"},
		"redis://:x,y@a:1":                 {"redis://:x,y@a:1"},
		"redis://:x,y,,z@a:1":              {"redis://:x,y,,z@a:1"},
		"redis://u:x,y@a:1,b:2":            {"redis://u:x,y@a:1", "b:2"},
		"b:2,redis://u:x,y@a:1":            {"b:2", "redis://u:x,y@a:1"},
		"redis://:x@a:1,valkeys://:y@b:2":  {"redis://:x@a:1", "valkeys://:y@b:2"},
		"redis://:x,@a:1,redis://:y,z@b:2": {"redis://:x,@a:1", "redis://:y,z@b:2"},
		"a:1,":                             {"a:1", ""},
		"x@a:1":                            {"x@a:1"},
	} {
		require.Equal(t, want, splitURLs(list), list)
	}
}

func TestRedisLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		before := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
		defer slog.SetDefault(before)
		log := &redisLog{}
		for range 30 {
			log.Printf(t.Context(), "dial %s\nfailed %s", "127.0.0.1:1", strings.Repeat("x", 10_000))
			time.Sleep(100 * time.Millisecond)
		}
		require.Equal(t, 3, strings.Count(out.String(), "\n"), "one line a second in three")
		require.Equal(t, 3, strings.Count(out.String(), `level=WARN msg=go-redis says="dial 127.0.0.1:1\nfailed x`))
		require.Less(t, out.Len(), 3_000)
	})
}
