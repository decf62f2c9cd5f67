package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// R18: of a provider's headers the caller gets those about the content, the ids and the time. What else
// there is may speak of its host or of the owner's account.
func TestForwardedAnswer(t *testing.T) {
	t.Parallel()
	passed := http.Header{
		"Content-Type":         {"application/json"},
		"Content-Length":       {"15"},
		"Content-Encoding":     {"x-own"},
		"Content-Disposition":  {"inline"},
		"Content-Language":     {"en"},
		"Etag":                 {`"1"`},
		"X-Request-Id":         {"req_1"},
		"Request-Id":           {"req_2"},
		"Openai-Processing-Ms": {"12"},
		"Server-Timing":        {"model;dur=12"},
	}
	kept := strings.Fields(`Alt-Svc Strict-Transport-Security OpenAI-Organization OpenAI-Project OpenAI-Version
		NEL Report-To Reporting-Endpoints Server Via X-Powered-By CF-Ray CF-Cache-Status Set-Cookie Set-Cookie2
		Access-Control-Allow-Origin Access-Control-Expose-Headers X-RateLimit-Limit X-RateLimit-Reset-Tokens
		RateLimit RateLimit-Policy Anthropic-Organization-Id Anthropic-RateLimit-Requests-Limit Link Location
		Content-Location Refresh Cache-Control Expires Age Vary Last-Modified Content-Security-Policy
		X-Content-Type-Options Server-Id X-Ms-Region Azureml-Model-Session Connection Keep-Alive Proxy-Status
		WWW-Authenticate Proxy-Authenticate Retry-After Retry-After-Ms X-Should-Retry Trailer Upgrade X-Any`)
	a, _ := provider(t, func(w http.ResponseWriter, _ *http.Request) {
		for _, name := range kept {
			w.Header().Add(name, "secret")
		}
		w.Header().Set("Date", "Thu, 01 Jan 1970 00:00:00 GMT")
		w.Header()["x-ratelimit-remaining"] = []string{"secret"}
		for name, values := range passed {
			w.Header()[name] = values
		}
		_, _ = io.WriteString(w, `{"theirs":true}`)
	})
	for _, route := range []string{"POST /v1/chat/completions", "GET /v1/models"} {
		got := a.sendRoute(t, route, ownKey)
		require.Equal(t, 200, got.status)
		require.Equal(t, `{"theirs":true}`, got.body)
		wantHeaders(t, passed, got.header)
	}
}

// wantHeaders checks that an answer has these headers, a date of its own and the limits, and no other.
func wantHeaders(t *testing.T, want, got http.Header) {
	t.Helper()
	require.NotContains(t, fmt.Sprint(got), "secret")
	require.NotContains(t, got.Get("Date"), "1970")
	require.Equal(t, []string{"60"}, got["X-Ratelimit-Limit"])
	require.Regexp(t, `^5\d$`, got.Get("X-RateLimit-Remaining"))
	require.Equal(t, []string{"minute"}, got["X-Ratelimit-Window"])
	rest := got.Clone()
	for _, name := range []string{"Date", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Window"} {
		rest.Del(name)
	}
	require.Equal(t, want, rest)
}

// R18: when to come back passes with what says that one has to.
func TestForwardedRetryAfter(t *testing.T) {
	t.Parallel()
	for status, passes := range map[int]bool{
		200: false, 400: false, 404: false, 429: true, 500: true, 503: true,
	} {
		a, _ := provider(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.Header().Set("Retry-After-Ms", "6500")
			w.Header().Set("X-Should-Retry", "true")
			w.Header().Set("Content-Type", "application/problem+json")
			w.Header().Set("X-RateLimit-Remaining", "secret")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"theirs":true}`)
		})
		want := http.Header{"Content-Type": {"application/problem+json"}, "Content-Length": {"15"}}
		if passes {
			want["Retry-After"], want["Retry-After-Ms"] = []string{"7"}, []string{"6500"}
			want["X-Should-Retry"] = []string{"true"}
		}
		got := a.chat(t, ownKey, "Hi", "")
		require.Equal(t, status, got.status)
		require.Equal(t, `{"theirs":true}`, got.body)
		wantHeaders(t, want, got.header)
	}
}

// R18: what a provider sends ahead of its answer stays here, and costs the answer nothing.
func TestInformationalAnswersStayOut(t *testing.T) {
	t.Parallel()
	a, _ := provider(t, func(w http.ResponseWriter, _ *http.Request) {
		for _, status := range []int{http.StatusEarlyHints, http.StatusProcessing, 199} {
			w.Header().Set("Link", "</secret>")
			w.Header().Set("Server", "secret")
			w.WriteHeader(status)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	})
	ahead, whole := a.raw(t, a.request(t, "GET", "/v1/models", ownKey, nil))
	require.Zero(t, ahead)
	require.NotContains(t, whole, "secret")
	require.Contains(t, whole, "X-Ratelimit-Remaining: 59\r\n")
}

// R18: nor do headers come behind the body.
func TestProviderTrailersStayOut(t *testing.T) {
	t.Parallel()
	a, _ := provider(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "Set-Cookie, X-Request-Id")
		fmt.Fprint(w, "{}")
		w.Header().Set("Set-Cookie", "announced=secret")
		w.Header().Set("X-Request-Id", "secret")
		w.Header().Set(http.TrailerPrefix+"X-Ratelimit-Remaining", "secret")
	})
	_, whole := a.raw(t, a.request(t, "GET", "/v1/models", ownKey, nil))
	require.NotContains(t, whole, "secret")
	require.NotContains(t, whole, "Trailer")
	require.Contains(t, whole, "{}")
	require.Contains(t, whole, "X-Ratelimit-Remaining: 59\r\n")
}
