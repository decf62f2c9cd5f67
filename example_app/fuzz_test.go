package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
)

// fuzzed returns the app's router without a server, limited by a clock that moves a minute with each
// look: nobody is ever rejected.
func fuzzed(f *testing.F) http.Handler {
	f.Helper()
	gin.SetMode(gin.ReleaseMode)
	cfg, err := loadConfig(env{}.get)
	require.NoError(f, err)
	var minutes atomic.Int64
	limiter := ginlimit.NewMemoryLimiter(ginlimit.WithClock(func() time.Time {
		return time.Unix(60*minutes.Add(1), 0)
	}))
	return newRouter(cfg, limiter)
}

// wantErrorObject checks that a body is what OpenAI SDKs decode.
func wantErrorObject(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	var body struct {
		Error struct{ Message, Type string }
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &body), w.Body)
	require.NotEmpty(t, body.Error.Message)
	require.NotEmpty(t, body.Error.Type)
}

// FuzzAuthorization sends any Authorization header: whoever shows a key is its owner, everybody else
// gets a 401.
func FuzzAuthorization(f *testing.F) {
	owners := map[string]string{
		"sk-free-demo": "user_free", "sk-pro-demo": "user_pro", "sk-enterprise-demo": "user_enterprise",
	}
	for _, header := range []string{
		"", " ", "Bearer", "Bearer ", "Bearer sk-free-demo", "bearer sk-pro-demo", "BEARER   sk-enterprise-demo  ",
		"Bearer\tsk-free-demo",
		"Basic sk-free-demo", "Basic dXNlcjpwYXNz", "sk-free-demo", " Bearer sk-free-demo",
		"Bearer sk-free-demo,Bearer sk-pro-demo",
		"Bearer sk-free-demo sk-pro-demo", "Bearer SK-FREE-DEMO", "Bearer sk-free-demo\x00", "Bearer \xff\xfe",
		"Bearer user_free",
		"Bearer " + strings.Repeat("a", 100),
	} {
		f.Add(header)
	}
	router := fuzzed(f)
	f.Fuzz(func(t *testing.T, header string) {
		req := httptest.NewRequest(http.MethodGet, "/v1/usage", nil)
		req.Header.Set("Authorization", header)
		w := httptest.NewRecorder()
		router.ServeHTTP(w, req)

		owner := ""
		if scheme, key, _ := strings.Cut(header, " "); strings.ToLower(scheme) == "bearer" {
			owner = owners[strings.TrimSpace(key)]
		}
		if owner == "" {
			require.Equal(t, http.StatusUnauthorized, w.Code, w.Body)
			require.Contains(t, w.Header().Get("WWW-Authenticate"), "Bearer")
			wantErrorObject(t, w)
			return
		}
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		var usage struct{ User string }
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &usage), w.Body)
		require.Equal(t, owner, usage.User)
	})
}

// FuzzChatBody sends any body: it is answered as a completion or a stream of one, or with what is
// wrong with it. The model's pace costs no time here.
func FuzzChatBody(f *testing.F) {
	for _, body := range []string{
		"", "{", "null", "[]", `"text"`, "{}", `{"model":"any"}`,
		chatBody("Hello there", ""), chatBody("", `,"max_tokens":1`),
		chatBody("naïve 日本語 👩‍👩‍👧", `,"max_completion_tokens":3,"n":1`),
		chatBody("Hello there", `,"stream":true`),
		chatBody("Hi", `,"stream":true,"stream_options":{"include_usage":true},"max_tokens":2`),
		chatBody("Hi", `,"n":2`), chatBody("Hi", `,"max_tokens":-1`),
		chatBody("Hi", `,"max_tokens":9223372036854775807`),
		chatBody("Hi", `,"max_tokens":1e3`), chatBody("Hi", `,"stream":"yes"`),
		chatBody("Hi", `,"stream_options":null`),
		`{"model":1,"messages":[]}`, `{"model":"any","messages":"Hi"}`, `{"model":"any","messages":[null]}`,
		`{"model":"any","messages":[1]}`,
		`{"model":"any","messages":[{"role":"user","content":null}]}`,
		`{"model":"any","messages":[{"role":"user","content":[{"type":"text","text":"a"},{}]}]}`,
		`{"model":"any","messages":[{"role":"user","content":[]}]}`,
		`{"model":"any","messages":[{"role":"user","content":{"a":1}}]}`,
		`{"model":"any","messages":[{"role":"user","content":"\ud800\u0000"}]}`,
		`{"model":"any","messages":[{"role":"system"},{"role":"user","content":" \n "}]} `,
		chatBody("one", "") + chatBody("two", ""), chatBody(strings.Repeat("ab \n", 50), ""),
		"\xef\xbb\xbf" + chatBody("Hi", ""),
		strings.Repeat("[", 100), `{"model":"any","messages":[{"role":"user","content":"` + "\xff\xc0" + `"}]}`,
	} {
		f.Add([]byte(body))
	}
	router := fuzzed(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		w := httptest.NewRecorder()
		synctest.Test(t, func(t *testing.T) {
			req := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(string(body)))
			req.Header.Set("Authorization", "Bearer sk-enterprise-demo")
			router.ServeHTTP(w, req)
		})

		require.NotEmpty(t, w.Header().Get("X-RateLimit-Remaining"), "whatever it is, it is counted")
		if w.Code != http.StatusOK {
			require.True(t, 400 <= w.Code && w.Code < 500 && w.Code != http.StatusTooManyRequests,
				"%d: %s", w.Code, w.Body)
			wantErrorObject(t, w)
			return
		}
		last := w.Body.String()
		if strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
			events, finished := strings.CutSuffix(last, "\n\ndata: [DONE]\n\n")
			require.True(t, finished, last)
			for event := range strings.SplitSeq(events, "\n\n") {
				data, found := strings.CutPrefix(event, "data: ")
				require.True(t, found, event)
				require.True(t, json.Valid([]byte(data)), event)
			}
			return
		}
		var answer completion
		require.NoError(t, json.Unmarshal([]byte(last), &answer), last)
		require.Equal(t, "chat.completion", answer.Object)
		require.Len(t, answer.Choices, 1)
		require.NotNil(t, answer.Choices[0].Message)
		require.Contains(t, []string{"stop", "length"}, *answer.Choices[0].FinishReason)
		require.Positive(t, answer.Usage.PromptTokens)
		require.Equal(t, answer.Usage.TotalTokens, answer.Usage.PromptTokens+answer.Usage.CompletionTokens)
	})
}
