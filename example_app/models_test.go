package main

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestModels(t *testing.T) {
	t.Parallel()
	a := start(t, nil)
	res := a.send(t, "GET", "/v1/models", freeKey, "")
	const builtIn = `{"id":"built-in","object":"model","created":0,"owned_by":"example_app"}`
	require.JSONEq(t, `{"object":"list","data":[`+builtIn+`]}`, res.body)
	require.Equal(t, "4", res.header.Get("X-RateLimit-Remaining"))

	res = a.send(t, "GET", "/v1/models/built-in", freeKey, "")
	require.JSONEq(t, builtIn, res.body)
	require.Equal(t, "3", res.header.Get("X-RateLimit-Remaining"))
}

// R21: the built-in model answers to any name, here as in a chat.
func TestModelOfAnyName(t *testing.T) {
	t.Parallel()
	a := start(t, nil)
	for path, id := range map[string]string{
		"gpt-4o": "gpt-4o", "org/model": "org/model", "org%2Fmodel": "org/model",
		"a%20b": "a b", "ft:x:y::z": "ft:x:y::z",
		"usage": "usage", "%E6%BC%A2": "漢",
	} {
		var got struct{ ID, Object string }
		res := a.send(t, "GET", "/v1/models/"+path, proKey, "")
		require.Equal(t, 200, res.status, path)
		res.json(t, &got)
		require.Equal(t, id, got.ID)
		require.Equal(t, "model", got.Object)
	}
	a.send(t, "GET", "/v1/models/", proKey, "").wantError(t, 404, "invalid_request_error", nil, "unknown_url")
	a.send(t, "POST", "/v1/models/x", proKey, "").
		wantError(t, 405, "invalid_request_error", nil, "method_not_allowed")
}

// R21: an id is forwarded as its caller wrote it, one segment or several.
func TestForwardedModel(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 1)
	a, _ := provider(t, func(w http.ResponseWriter, r *http.Request) { seen <- r.RequestURI })
	for path, want := range map[string]string{
		"gpt-4o":                "gpt-4o",
		"gpt-3.5-turbo":         "gpt-3.5-turbo",
		"org/model":             "org/model",
		"org%2Fmodel":           "org%2Fmodel",
		"org%2fmodel":           "org%2Fmodel",
		"@cf/org/llama-3:8b":    "@cf/org/llama-3:8b",
		"%67pt-4o":              "gpt-4o",
		"..gpt..":               "..gpt..",
		"ft:gpt-4o:org::id?x=1": "ft:gpt-4o:org::id?x=1",
		"models":                "models",
	} {
		require.Equal(t, 200, a.send(t, "GET", "/v1/models/"+path, ownKey, "").status, path)
		require.Equal(t, "/base/v1/models/"+want, <-seen, path)
	}
}

// R21: no id leads out of the provider's list of models.
func TestModelStaysBelowTheBase(t *testing.T) {
	t.Parallel()
	a, _ := provider(t, func(_ http.ResponseWriter, r *http.Request) {
		t.Error("reached the provider", r.RequestURI)
	})
	for _, path := range []string{
		".", "..", "../files", "../../admin", "x/../../files", "x/..", "./x", "x/.", "%2e%2e/files", "..%2Ffiles",
		"%2E%2E%2Ffiles", "x%2F..%2F..%2Ffiles", ".%2e/files", "%252e%252e%252ffiles", "..%252ffiles", "..%5Cfiles",
		"..%5cfiles", "..;/files", "..;x=1/files", "..%00/files", "..%3Fx", "..%23x",
		"%2Ffiles", "/files", "x//files",
		"x/", "x%2F", "x%0d%0aHost:%20y", "..%c0%affiles", "%ff", "x%20y", "...",
		"%EF%BC%8E%EF%BC%8E/files", "x%3Fy",
		"x%23y", "%25", "x%7Fy", "https://h.invalid/x",
	} {
		got := a.send(t, "GET", "/v1/models/"+path, ownKey, "")
		got.wantError(t, 404, "invalid_request_error", "model", "model_not_found")
		require.NotEmpty(t, got.header.Get("X-RateLimit-Remaining"), path)
	}
	a.send(t, "GET", "/v1/models/", ownKey, "").wantError(t, 404, "invalid_request_error", nil, "unknown_url")
	for _, path := range []string{"/v1/../v1/files", "/v1/chat/completions/..", "/v1/models/../files"} {
		require.Equal(t, 404, a.send(t, "GET", path, ownKey, "").status)
	}
}
