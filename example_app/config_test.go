package main

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/tiers"
)

func tierFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiers.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// Every setting that is wrong stops the start with one line that names it and repeats no secret.
func TestBadSettings(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { taken.Close() })
	gold := tierFile(t, "fallback: gold\ntiers:\n  gold: {per_minute: 1, per_day: 2}\n")
	const own = "sk-secret=me:pro"

	for name, row := range map[string]struct {
		env  env
		want []string
	}{
		"address without port": {env{"LISTEN_ADDR": "localhost"},
			[]string{`LISTEN_ADDR "localhost": want host:port`}},
		"address with empty port": {env{"LISTEN_ADDR": "localhost:"},
			[]string{`LISTEN_ADDR "localhost:": the port must be`}},
		"port out of range": {env{"LISTEN_ADDR": "localhost:65536"},
			[]string{`LISTEN_ADDR "localhost:65536"`, "0 to 65535"}},
		"port in use": {env{"LISTEN_ADDR": taken.Addr().String()},
			[]string{"LISTEN_ADDR", taken.Addr().String(), "in use"}},
		"unknown host": {env{"LISTEN_ADDR": "no-such-host.invalid:80", "API_KEYS": own},
			[]string{`LISTEN_ADDR "no-such-host.invalid:80"`}},

		"Redis scheme":        {env{"REDIS_URL": "http://:sk-secret@localhost"}, []string{"REDIS_URL", "1 of 1"}},
		"Redis URL":           {env{"REDIS_URL": "redis://:sk-secret@[::1"}, []string{"REDIS_URL", "1 of 1"}},
		"Redis trailing list": {env{"REDIS_URL": "127.0.0.1:1,"}, []string{"REDIS_URL", "2 of 2"}},

		"tier file missing": {env{"TIERS_FILE": "no/such/file"},
			[]string{"TIERS_FILE", "no/such/file", "no such file"}},
		"tier file wrong": {env{"TIERS_FILE": tierFile(t, "tiers:\n  free: {per_minute: 5, per_day: 3}\n")},
			[]string{"TIERS_FILE", "free.per_day: 3 is less than per_minute 5"}},

		"keys without tier": {env{"API_KEYS": "sk-secret=me"},
			[]string{"API_KEYS: entry 1 is not key=user:tier"}},
		"keys without user":        {env{"API_KEYS": "sk-secret=:pro"}, []string{"API_KEYS: entry 1 is not"}},
		"keys without key":         {env{"API_KEYS": "=me:pro"}, []string{"API_KEYS: entry 1 is not"}},
		"keys with an empty entry": {env{"API_KEYS": own + ","}, []string{"API_KEYS: entry 2 is not"}},
		"keys without comma":       {env{"API_KEYS": own + " " + own}, []string{"API_KEYS: entry 1 is not"}},
		"keys with semicolon":      {env{"API_KEYS": own + ";" + own}, []string{"API_KEYS: entry 1 is not"}},
		"keys with trailing text":  {env{"API_KEYS": own + ":sk-secret="}, []string{"API_KEYS: entry 1 is not"}},
		"key that no header has": {env{"API_KEYS": "sk-secret\u00e9=me:pro"},
			[]string{"API_KEYS: entry 1 is not"}},
		"keys with an unknown tier": {env{"API_KEYS": own + ", sk-secret2=me:gold"},
			[]string{`API_KEYS: entry 2: unknown tier "gold"`, `"free"`}},
		"key twice": {env{"API_KEYS": own + ",sk-secret=you:free"},
			[]string{"API_KEYS: entry 2 repeats"}},
		"demo tiers not in file": {env{"TIERS_FILE": gold}, []string{"API_KEYS: must be set", "TIERS_FILE"}},

		"demo keys on all addresses": {env{"LISTEN_ADDR": ":0"},
			[]string{"API_KEYS", "demo keys", `LISTEN_ADDR ":0"`}},
		"demo keys on any address": {env{"LISTEN_ADDR": "0.0.0.0:0"},
			[]string{"API_KEYS", "demo keys", `LISTEN_ADDR "0.0.0.0:0"`}},
		"demo keys on an IPv6 address": {env{"LISTEN_ADDR": "[::]:0"},
			[]string{"demo keys", `LISTEN_ADDR "[::]:0"`}},
		"demo keys with a provider": {env{"UPSTREAM_BASE_URL": "http://localhost/v1"},
			[]string{"API_KEYS", "demo keys", "UPSTREAM_BASE_URL"}},
		"demo key among others": {env{"LISTEN_ADDR": ":0", "API_KEYS": own + ",sk-pro-demo=me:pro"},
			[]string{"demo keys", "LISTEN_ADDR"}},
		"demo key in a table of others": {
			env{"LISTEN_ADDR": ":0", "TIERS_FILE": gold, "API_KEYS": "sk-pro-demo=me:gold"},
			[]string{"demo keys"}},

		"admin token of two words":  {env{"ADMIN_TOKEN": "sk-secret two"}, []string{"ADMIN_TOKEN: has characters"}},
		"admin token beyond ASCII":  {env{"ADMIN_TOKEN": "sk-secreté"}, []string{"ADMIN_TOKEN: has characters"}},
		"admin token is a demo key": {env{"ADMIN_TOKEN": "sk-pro-demo"}, []string{"ADMIN_TOKEN: is one of"}},
		"admin token is a key": {env{"ADMIN_TOKEN": "sk-secret", "API_KEYS": own},
			[]string{"ADMIN_TOKEN: is one of API_KEYS"}},
		"unknown policy": {env{"FAILURE_POLICY": "opne"},
			[]string{`FAILURE_POLICY "opne": want closed, open or local`}},

		"no number of bytes": {env{"MAX_BODY_BYTES": "32MiB"},
			[]string{`MAX_BODY_BYTES "32MiB": want a whole number`}},
		"no bytes":       {env{"MAX_BODY_BYTES": "0"}, []string{`MAX_BODY_BYTES "0"`}},
		"fewer bytes":    {env{"MAX_BODY_BYTES": "-1"}, []string{`MAX_BODY_BYTES "-1"`}},
		"half a byte":    {env{"MAX_BODY_BYTES": "1.5"}, []string{`MAX_BODY_BYTES "1.5"`}},
		"too many bytes": {env{"MAX_BODY_BYTES": "99999999999999999999"}, []string{`MAX_BODY_BYTES`}},
		"provider without scheme": {env{"API_KEYS": own, "UPSTREAM_BASE_URL": "localhost:1/v1"},
			[]string{"UPSTREAM_BASE_URL", "http://"}},
		"provider of other scheme": {env{"API_KEYS": own, "UPSTREAM_BASE_URL": "ftp://localhost/v1"},
			[]string{"UPSTREAM_BASE_URL"}},
		"provider without host": {env{"API_KEYS": own, "UPSTREAM_BASE_URL": "http:///v1"},
			[]string{"UPSTREAM_BASE_URL"}},
		"provider's port out of range": {env{"API_KEYS": own, "UPSTREAM_BASE_URL": "http://localhost:65536/v1"},
			[]string{"UPSTREAM_BASE_URL", "port"}},
		"provider with user": {env{"API_KEYS": own, "UPSTREAM_BASE_URL": "http://me:sk-secret@localhost/v1"},
			[]string{"UPSTREAM_BASE_URL"}},
		"provider with query": {env{"API_KEYS": own, "UPSTREAM_BASE_URL": "http://localhost/v1?key=sk-secret"},
			[]string{"UPSTREAM_BASE_URL"}},
		"provider that is no URL": {env{"API_KEYS": own, "UPSTREAM_BASE_URL": "http://loc%zzalhost"},
			[]string{"UPSTREAM_BASE_URL"}},
		"provider key of two lines": {
			env{"API_KEYS": own, "UPSTREAM_BASE_URL": "http://localhost/v1",
				"UPSTREAM_API_KEY": "sk-secret\r\nX: y"},
			[]string{"UPSTREAM_API_KEY"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // if it starts after all
			defer cancel()
			err := run(ctx, row.env.get, io.Discard)
			require.Error(t, err)
			for _, part := range row.want {
				require.ErrorContains(t, err, part)
			}
			require.NotContains(t, err.Error(), "sk-secret")
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	cfg, err := loadConfig(env{
		"LISTEN_ADDR":       " localhost:8080 ",
		"REDIS_URL":         "a:1,b:2",
		"API_KEYS":          "sk-a==team:a:free , sk-b=zoë:pro",
		"UPSTREAM_BASE_URL": "https://api.example.com/v1/",
		"UPSTREAM_API_KEY":  "sk-up",
	}.get)
	require.NoError(t, err)
	require.Equal(t, "localhost:8080", cfg.listenAddr)
	require.Equal(t, []string{"a:1", "b:2"}, cfg.redisURLs)
	require.Equal(t, "https://api.example.com/v1/", cfg.upstreamURL.String())
	require.Equal(t, "sk-up", cfg.upstreamAPIKey)
	owners := map[string]tiers.Tier{}
	for _, owner := range cfg.callers {
		owners[owner.user] = owner.tier
	}
	require.Equal(t, map[string]tiers.Tier{"team:a": "free", "zoë": "pro"}, owners)
}

// A key of one's own may be used anywhere; the demo keys on loopback only, whatever its name.
func TestWhereKeysAreGood(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"127.0.0.1:0", "127.9.9.9:0", "localhost:0", "[::1]:0"} {
		_, err := loadConfig(env{"LISTEN_ADDR": addr}.get)
		require.NoError(t, err, addr)
	}
	for _, addr := range []string{":0", "0.0.0.0:0", "[::]:0", "203.0.113.7:0", "example.com:0", "127.1:0"} {
		_, err := loadConfig(env{"LISTEN_ADDR": addr}.get)
		require.ErrorContains(t, err, "demo keys", addr)
		_, err = loadConfig(env{"LISTEN_ADDR": addr, "API_KEYS": "sk-own=me:pro"}.get)
		require.NoError(t, err, addr)
	}
}
