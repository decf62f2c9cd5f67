package ginlimit_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit_test/apptest"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

func TestApp(t *testing.T) {
	t.Parallel()
	binary := apptest.Build(t)

	t.Run("needs nothing else", func(t *testing.T) {
		t.Parallel()
		app := apptest.Start(t, binary)
		require.Regexp(t, `^http://127\.0\.0\.1:[1-9]\d*$`, app.URL)
		for _, want := range []int{200, 200, 200, 200, 200, 429} {
			resp := call(t, app, "sk-free-demo", "Hello there")
			require.Equal(t, want, resp.StatusCode, resp.body)
			require.Equal(t, "5", resp.Header.Get("X-RateLimit-Limit"))
		}
		require.Equal(t, 200, call(t, app, "sk-pro-demo", "Hello there").StatusCode)
		app.Terminate()
		code, stderr := app.Wait()
		require.Zero(t, code)
		require.Contains(t, stderr, "in memory")
		require.NotContains(t, stderr, "sk-")
	})

	t.Run("refuses bad settings", func(t *testing.T) {
		t.Parallel()
		for setting, want := range map[string]string{
			"LISTEN_ADDR=nowhere":                       `LISTEN_ADDR "nowhere"`,
			"LISTEN_ADDR=0.0.0.0:0":                     "demo keys",
			"REDIS_URL=redis://:sk-secret@h:port":       "REDIS_URL",
			"TIERS_FILE=/no/such/file":                  "/no/such/file",
			"PRICES_FILE=/no/such/file":                 "PRICES_FILE: stat /no/such/file",
			"PRICES_FILE=" + appFile(t, "gpt: {in: 1}"): `PRICES_FILE: model "gpt": "in": unknown field`,
			"API_KEYS=sk-secret=me:gold":                `API_KEYS: entry 1: unknown tier "gold"`,
			"UPSTREAM_BASE_URL=https://me:sk-secret@h/": "UPSTREAM_BASE_URL",
		} {
			code, stderr := apptest.Run(t, binary, setting)
			require.Equal(t, 1, code, setting)
			require.Regexp(t, `^example_app: [^\n]+\n$`, stderr, "one line")
			require.Contains(t, stderr, want)
			require.NotContains(t, stderr, "sk-secret")
		}
	})

	// R42
	t.Run("waits for no tier file", func(t *testing.T) {
		t.Parallel()
		fifo := filepath.Join(t.TempDir(), "tiers.yaml")
		require.NoError(t, syscall.Mkfifo(fifo, 0o600))
		for _, file := range []string{fifo, filepath.Dir(fifo), "/dev/zero"} {
			code, stderr := apptest.Run(t, binary, "TIERS_FILE="+file)
			require.Equal(t, 1, code, file)
			require.Regexp(t, `^example_app: TIERS_FILE: [^\n]+\n$`, stderr, "one line")
			require.Contains(t, stderr, file)
		}
	})

	// R45
	t.Run("tells which demo keys it drops", func(t *testing.T) {
		t.Parallel()
		file := filepath.Join(t.TempDir(), "tiers.yaml")
		require.NoError(t, os.WriteFile(file, []byte("tiers: {free: {per_minute: 2, per_day: 3}}"), 0o600))
		for keys, warned := range map[string]int{"": 1, "sk-own=me:free": 0} {
			app := apptest.Start(t, binary, "TIERS_FILE="+file, "API_KEYS="+keys)
			require.Equal(t, 401, call(t, app, "sk-pro-demo", "Hi").StatusCode)
			app.Terminate()
			code, stderr := app.Wait()
			require.Zero(t, code)
			for _, tier := range []string{"pro", "enterprise"} {
				require.Equal(t, warned, strings.Count(stderr, "tier="+tier+"\n"), stderr)
			}
			require.Equal(t, 2*warned, strings.Count(stderr, "WARN"), stderr)
			require.NotContains(t, stderr, "sk-")
		}
	})

	t.Run("drains on SIGTERM", func(t *testing.T) {
		t.Parallel()
		next := make(chan string)
		provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, <-next)
		}))
		defer provider.Close()
		app := apptest.Start(t, binary, "API_KEYS=sk-own=me:pro", "UPSTREAM_BASE_URL="+provider.URL)
		stream := ask(t, app, "sk-own", "Hello there")
		require.Equal(t, 200, stream.StatusCode)
		require.Equal(t, "59", stream.Header.Get("X-RateLimit-Remaining"))

		app.Terminate()
		require.Eventually(t, func() bool { return !listens(app) }, 10*time.Second, 5*time.Millisecond)
		next <- "data: [DONE]\n\n"
		rest, err := io.ReadAll(stream.Body)
		require.NoError(t, err)
		require.Equal(t, "data: [DONE]\n\n", string(rest))
		code, _ := app.Wait()
		require.Zero(t, code)
	})

	t.Run("outlives its Redis", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t)
		server.Stop()
		app := apptest.Start(t, binary, "REDIS_URL="+server.URL())
		down := func() { // to a caller who is not known to be rejected anyway
			resp := call(t, app, "sk-enterprise-demo", "Hello there")
			require.Equal(t, 503, resp.StatusCode, resp.body)
			require.Equal(t, "1", resp.Header.Get("Retry-After"))
			require.NotContains(t, resp.body, server.Addr)
		}
		down()
		server.Restart()
		require.Eventually(t, func() bool {
			return call(t, app, "sk-pro-demo", "Hello there").StatusCode == 200
		}, 10*time.Second, 50*time.Millisecond, "Redis is back")
		for _, want := range []int{200, 200, 200, 200, 200, 429} {
			require.Equal(t, want, call(t, app, "sk-free-demo", "Hello there").StatusCode)
		}
		server.Stop()
		down()
	})

	// R15, R16, R36
	t.Run("takes the addresses that services hand out", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t)
		require.NoError(t, server.Client(t).ConfigSet(t.Context(), "requirepass", "s3cr,etpw").Err())
		for _, url := range []string{
			"redis://:s3cr,etpw@" + server.Addr, "valkey://default:s3cr%2Cetpw@" + server.Addr + "/0?pool_size=3",
			"redis+tcp://:s3cr,etpw@" + server.Addr,
		} {
			app := apptest.Start(t, binary, "REDIS_URL="+url, "RATE_LIMIT_DISABLED=false")
			require.Equal(t, 200, call(t, app, "sk-pro-demo", "Hi").StatusCode, url)
			app.Terminate()
			_, stderr := app.Wait()
			require.NotContains(t, stderr, "s3cr")
			require.NotContains(t, stderr, "memory and hold")
		}
		nodes := redistest.StartCluster(t, 3, 0).Addrs()
		for _, url := range []string{nodes[0] + "," + nodes[1],
			"valkey://" + nodes[0] + "?addr=" + nodes[1] + "&read_timeout=900ms"} {
			app := apptest.Start(t, binary, "REDIS_URL="+url)
			require.Equal(t, 200, call(t, app, "sk-pro-demo", "Hi").StatusCode, url)
		}
		for _, url := range []string{"valkeys://:s3cr@127.0.0.1:1", "redis+tls://127.0.0.1:1"} {
			app := apptest.Start(t, binary, "REDIS_URL="+url)
			require.Equal(t, 503, call(t, app, "sk-pro-demo", "Hi").StatusCode, url)
		}
		for _, url := range []string{"http://:s3cr@127.0.0.1", "valkeyss://127.0.0.1:1"} {
			code, stderr := apptest.Run(t, binary, "REDIS_URL="+url)
			require.Equal(t, 1, code)
			require.Contains(t, stderr, `unknown scheme "`+url[:4])
			require.NotContains(t, stderr, "s3cr")
		}
	})

	t.Run("says little during an outage", func(t *testing.T) {
		t.Parallel()
		app := apptest.Start(t, binary, "REDIS_URL=redis://:s3cr@127.0.0.1:1")
		began := time.Now()
		for range 40 {
			require.Equal(t, 503, call(t, app, "sk-pro-demo", "Hi").StatusCode)
			require.Equal(t, 503, get(t, app, "sk-pro-demo", "/v1/usage").StatusCode)
		}
		app.Terminate()
		_, stderr := app.Wait()
		seconds := 1 + int(time.Since(began)/time.Second)
		for _, kind := range []string{"go-redis", "usage cannot be read"} {
			require.LessOrEqual(t, strings.Count(stderr, kind), seconds, stderr)
		}
		require.Contains(t, stderr, "usage cannot be read")
		require.NotContains(t, stderr, "s3cr")
		require.NotContains(t, stderr, "redis: 2", "a line in go-redis's own format")
		for line := range strings.Lines(stderr) {
			require.Regexp(t, `^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d (INFO|WARN|ERROR) `, line)
		}
	})

	t.Run("shares its limits", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t)
		one := apptest.Start(t, binary, "REDIS_URL="+server.URL())
		two := apptest.Start(t, binary, "REDIS_URL="+server.URL())
		statuses := map[int]int{}
		for range 5 {
			for _, app := range []*apptest.App{one, two} {
				statuses[call(t, app, "sk-free-demo", "Hello there").StatusCode]++
			}
		}
		// On a busy machine a call may end in 503 after 100 ms, and have cost its slot.
		require.LessOrEqual(t, statuses[200], 5, statuses)
		require.GreaterOrEqual(t, statuses[200]+statuses[503], 5, statuses)
		require.Equal(t, 10, statuses[200]+statuses[429]+statuses[503], statuses)
	})

	t.Run("tells the usage in one round trip", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t)
		app := apptest.Start(t, binary, "REDIS_URL="+server.URL())
		require.Equal(t, 200, call(t, app, "sk-free-demo", "Hello there").StatusCode)
		rdb := server.Client(t)
		require.NoError(t, rdb.ConfigResetStat(t.Context()).Err())
		keys, err := rdb.Keys(t.Context(), "*").Result()
		require.NoError(t, err)
		for i := range 6 {
			got := get(t, app, "sk-free-demo", "/v1/usage")
			require.Equal(t, 200, got.StatusCode, got.body)
			require.JSONEq(t, `{"object":"usage","user":"user_free","tier":"free","budgets":[
				{"window":"minute","limit":5,"used":1,"remaining":4,"retry_after":0},
				{"window":"day","limit":100,"used":1,"remaining":99,"retry_after":0}]}`, got.body)
			stats := rdb.InfoMap(t.Context(), "commandstats").Item("Commandstats", "cmdstat_evalsha")
			// The first finds that the server has yet to learn the script.
			require.Regexp(t, fmt.Sprintf("^calls=%d,", i+1), stats)

		}
		after, err := rdb.Keys(t.Context(), "*").Result()
		require.NoError(t, err)
		require.ElementsMatch(t, keys, after)
	})

	// Every number that a tier file can have is a budget, shown in one round trip too.
	t.Run("has every budget", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t)
		app := apptest.Start(t, binary, "REDIS_URL="+server.URL(), "TIERS_FILE="+appFile(t, `tiers: {free: {
			per_minute: 50, per_hour: 60, per_day: 70, per_month: 80, tokens_per_minute: 1000, tokens_per_day: 2000,
			tokens_per_month: 3000, spend_per_day: 2.50, spend_per_month: 9, concurrent: 3}}`),
			"PRICES_FILE="+appFile(t, "any: {input: 2, cached_input: 1, output: 10}"))
		said := call(t, app, "sk-free-demo", "Hello there") // 9 and 5 tokens
		require.Equal(t, 200, said.StatusCode, said.body)
		require.Equal(t, "1000", said.Header.Get("X-RateLimit-Limit-Tokens"))
		require.Equal(t, "2.50", said.Header.Get("X-RateLimit-Limit-Spend"))
		require.Eventually(t, func() bool {
			return appUsed(t, app, "sk-free-demo")["concurrent"] == 0 // and so it is settled
		}, 10*time.Second, 10*time.Millisecond)
		before := server.Calls(t, "evalsha")
		require.JSONEq(t, `{"object":"usage","user":"user_free","tier":"free","budgets":[
			{"window":"minute","limit":50,"used":1,"remaining":49,"retry_after":0},
			{"window":"hour","limit":60,"used":1,"remaining":59,"retry_after":0},
			{"window":"day","limit":70,"used":1,"remaining":69,"retry_after":0},
			{"window":"month","limit":80,"used":1,"remaining":79,"retry_after":0},
			{"window":"tokens-minute","limit":1000,"used":14,"remaining":986,"retry_after":0},
			{"window":"tokens-day","limit":2000,"used":14,"remaining":1986,"retry_after":0},
			{"window":"tokens-month","limit":3000,"used":14,"remaining":2986,"retry_after":0},
			{"window":"spend-day","limit":2.5,"used":0.000068,"remaining":2.499932,"retry_after":0},
			{"window":"spend-month","limit":9,"used":0.000068,"remaining":8.999932,"retry_after":0},
			{"window":"concurrent","limit":3,"used":0,"remaining":3,"retry_after":0}]}`,
			get(t, app, "sk-free-demo", "/v1/usage").body)
		require.Equal(t, before+1, server.Calls(t, "evalsha"))
	})

	t.Run("can be switched off", func(t *testing.T) {
		t.Parallel()
		app := apptest.Start(t, binary, "RATE_LIMIT_DISABLED=true", "REDIS_URL=127.0.0.1:1")
		for range 10 {
			resp := call(t, app, "sk-free-demo", "Hello there")
			require.Equal(t, 200, resp.StatusCode, resp.body)
			require.Equal(t, "5", resp.Header.Get("X-RateLimit-Remaining"))
		}
	})
}

// ask sends a chat completion and returns when its headers are there.
func ask(t *testing.T, app *apptest.App, key, said string) *http.Response {
	t.Helper()
	body := `{"model":"any","messages":[{"role":"user","content":"` + said + `"}]}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, app.URL+"/v1/chat/completions",
		strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// get sends a GET and reads the answer.
func get(t *testing.T, app *apptest.App, key, path string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, app.URL+path, nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return answer{resp, string(body)}
}

// call sends a chat completion and reads the answer.
func call(t *testing.T, app *apptest.App, key, said string) answer {
	t.Helper()
	resp := ask(t, app, key, said)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return answer{resp, string(body)}
}

func listens(app *apptest.App) bool {
	conn, err := net.Dial("tcp", strings.TrimPrefix(app.URL, "http://"))
	if err == nil {
		conn.Close()
	}
	return err == nil
}
