package ginlimit_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit_test/apptest"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// threeAtOnce is a tier file by which a user may have three requests in progress.
const threeAtOnce = `tiers: {free: {per_minute: 100000, per_day: 100000, tokens_per_day: 1000000000,
	concurrent: 3}}`

func appFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// streamer is a provider of streams, each of which lasts until it is let go or its client leaves.
type streamer struct {
	*httptest.Server
	running, most atomic.Int64
	next          chan struct{} // one stream goes on; closed: all do
}

func startStreamer(t *testing.T) *streamer {
	t.Helper()
	s := &streamer{next: make(chan struct{})}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := s.running.Add(1)
		defer s.running.Add(-1)
		for most := s.most.Load(); now > most && !s.most.CompareAndSwap(most, now); most = s.most.Load() {
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"Hello"}}]}`+"\n\n")
		w.(http.Flusher).Flush()
		select {
		case <-s.next:
			_, _ = io.WriteString(w, "data: [DONE]\n\n")
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// startPair starts two processes of the app on one Redis, in front of a streamer.
func startPair(t *testing.T, s *streamer) [2]*apptest.App {
	t.Helper()
	binary, tierFile := apptest.Build(t), appFile(t, threeAtOnce)
	url := "REDIS_URL=" + redistest.Start(t).URL()
	one := func() *apptest.App {
		return apptest.Start(t, binary, url, "TIERS_FILE="+tierFile, "API_KEYS=sk-own=me:free",
			"UPSTREAM_BASE_URL="+s.URL)
	}
	return [2]*apptest.App{one(), one()}
}

// openStream asks for a stream and returns when its headers are there.
func openStream(ctx context.Context, app *apptest.App, key string) (*http.Response, error) {
	body := `{"model":"any","stream":true,"messages":[{"role":"user","content":"` +
		strings.Repeat("word ", 100) + `"}]}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, app.URL+"/v1/chat/completions",
		strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	return http.DefaultClient.Do(req)
}

// appUsed is what GET /v1/usage says was used, by budget.
func appUsed(t *testing.T, app *apptest.App, key string) map[string]float64 {
	t.Helper()
	var report struct {
		Budgets []struct {
			Window string
			Used   float64
		}
	}
	got := get(t, app, key, "/v1/usage")
	for try := 0; got.StatusCode == http.StatusServiceUnavailable && try < 10; try++ { // on a busy machine
		got = get(t, app, key, "/v1/usage")
	}
	require.Equal(t, http.StatusOK, got.StatusCode)
	require.NoError(t, json.Unmarshal([]byte(got.body), &report), got.body)
	used := map[string]float64{}
	for _, b := range report.Budgets {
		used[b.Window] = b.Used
	}
	return used
}

// Q10: over two processes never more than three streams run, and all twenty get their turn.
func TestAppsShareSlots(t *testing.T) {
	t.Parallel()
	s := startStreamer(t)
	apps := startPair(t, s)
	var done, refused atomic.Int64
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			for t.Context().Err() == nil {
				resp, err := openStream(t.Context(), apps[i%2], "sk-own")
				if err != nil {
					t.Error(err)
					return
				}
				body, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				switch {
				case err == nil && resp.StatusCode == http.StatusOK:
					done.Add(1)
					return
				case resp.StatusCode == http.StatusTooManyRequests && resp.Header.Get("Retry-After") == "1" &&
					resp.Header.Get("X-RateLimit-Window") == "concurrent":
					refused.Add(1)
				case resp.StatusCode != http.StatusServiceUnavailable: // a busy machine
					t.Errorf("%d %s %v", resp.StatusCode, body, err)
					return
				}
				time.Sleep(10 * time.Millisecond) // a caller who does not wait as told
			}
		})
	}
	// Nothing is let go before all slots are taken and everybody else was refused.
	require.Eventually(t, func() bool { return s.running.Load() == 3 && refused.Load() >= 17 },
		30*time.Second, 5*time.Millisecond)
	for range 20 {
		s.next <- struct{}{}
	}
	all.Wait()
	require.EqualValues(t, 20, done.Load())
	require.EqualValues(t, 3, s.most.Load())
	require.Eventually(t, func() bool { return appUsed(t, apps[0], "sk-own")["concurrent"] == 0 },
		10*time.Second, 10*time.Millisecond)
}

// Q7: the slots of a process that dies come back when its leases end, 15 s after it last renewed them, and no
// sooner.
func TestSlotsOfAKilledApp(t *testing.T) {
	if testing.Short() {
		t.Skip("15 s")
	}
	t.Parallel()
	s := startStreamer(t)
	apps := startPair(t, s)
	for range 3 {
		resp, err := openStream(t.Context(), apps[0], "sk-own")
		require.NoError(t, err)
		defer resp.Body.Close()
		require.Equal(t, http.StatusOK, resp.StatusCode)
	}
	apps[0].Kill()
	killed := time.Now()
	refused := call(t, apps[1], "sk-own", "Hi")
	require.Equal(t, http.StatusTooManyRequests, refused.StatusCode)
	require.Contains(t, refused.body, `"code":"too_many_concurrent_requests"`)
	require.EqualValues(t, 3, appUsed(t, apps[1], "sk-own")["concurrent"])
	require.Eventually(t, func() bool { return appUsed(t, apps[1], "sk-own")["concurrent"] == 0 },
		time.Minute, 100*time.Millisecond)
	took := time.Since(killed)
	require.Greater(t, took, 7*time.Second, "renewed 5 s before at most")
	require.Less(t, took, 25*time.Second)
	close(s.next)
	resp, err := openStream(t.Context(), apps[1], "sk-own")
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
}

// L1, Q6: a hundred streams are left after their first piece: each slot is back within a second, and what
// was streamed is charged, but no more than that.
func TestLeftStreamsGiveSlotsBack(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Build(t), "REDIS_URL="+redistest.Start(t).URL(),
		"TIERS_FILE="+appFile(t, threeAtOnce))
	var waits []time.Duration
	const times, prompt = 100, 107 // 3 for the reply, 3 for the frame, 1 for the role, a word each
	for range times {
		ctx, leave := context.WithCancel(t.Context())
		resp, err := openStream(ctx, app, "sk-free-demo")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		_, err = resp.Body.Read(make([]byte, 100))
		require.NoError(t, err)
		leave()
		resp.Body.Close()
		left := time.Now()
		require.Eventually(t, func() bool { return appUsed(t, app, "sk-free-demo")["concurrent"] == 0 },
			10*time.Second, 5*time.Millisecond)
		waits = append(waits, time.Since(left))
	}
	slices.Sort(waits)
	require.Less(t, waits[times*9/10], time.Second)
	used := appUsed(t, app, "sk-free-demo")
	require.EqualValues(t, times, used["minute"])
	// The prompt as it is estimated, without the 3, and the piece.
	require.GreaterOrEqual(t, used["tokens-day"], float64(times*(prompt-3)))
	require.Less(t, used["tokens-day"], float64(times*(prompt+102)), "what they would have been")
}
