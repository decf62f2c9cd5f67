package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	freeKey = "sk-free-demo"
	proKey  = "sk-pro-demo"
)

// env is what a test sets; everything else is unset, but a free loopback port.
type env map[string]string

func (e env) get(name string) string {
	if value, ok := e[name]; ok || name != "LISTEN_ADDR" {
		return value
	}
	return "127.0.0.1:0"
}

// app is the example app, run in this process.
type app struct {
	url   string
	stop  context.CancelFunc // what SIGTERM does
	ended chan error         // what run returned
}

// start runs the app until the end of the test and returns when it listens.
func start(t *testing.T, settings env) *app {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	stdout, out := io.Pipe()
	a := &app{stop: stop, ended: make(chan error, 1)}
	go func() {
		err := run(ctx, settings.get, out)
		out.CloseWithError(io.EOF)
		a.ended <- err
	}()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		require.NoError(t, <-a.ended)
	}
	url, found := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	require.True(t, found, line)
	a.url = url
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-a.ended)
		a.ended <- nil // for a test that waits too
	})
	return a
}

// answer is a response that was read to its end.
type answer struct {
	status int
	header http.Header
	body   string
}

// json decodes the body.
func (a answer) json(t *testing.T, into any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(a.body), into), a.body)
}

// wantError checks that the answer is an OpenAI error object; param and code may be nil.
func (a answer) wantError(t *testing.T, status int, kind string, param, code any) {
	t.Helper()
	require.Equal(t, status, a.status, a.body)
	require.Contains(t, a.header.Get("Content-Type"), "application/json")
	var body struct {
		Error map[string]any `json:"error"`
	}
	a.json(t, &body)
	require.NotEmpty(t, body.Error["message"])
	want := map[string]any{"message": body.Error["message"], "type": kind, "param": param, "code": code}
	require.Equal(t, want, body.Error)
}

// send makes a request with an API key; an empty key sends none.
func (a *app) send(t *testing.T, method, path, key, body string) answer {
	t.Helper()
	return read(t, a.open(t, a.request(t, method, path, key, strings.NewReader(body))))
}

// sendRoute makes a request without a body to a "METHOD /path".
func (a *app) sendRoute(t *testing.T, route, key string) answer {
	t.Helper()
	method, path, _ := strings.Cut(route, " ")
	return a.send(t, method, path, key, "")
}

func read(t *testing.T, res *http.Response) answer {
	t.Helper()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return answer{res.StatusCode, res.Header, string(text)}
}

// chat asks for a completion; fields follow the messages, as `,"stream":true`.
func (a *app) chat(t *testing.T, key, said, fields string) answer {
	t.Helper()
	return a.send(t, "POST", "/v1/chat/completions", key, chatBody(said, fields))
}

func chatBody(said, fields string) string {
	text, _ := json.Marshal(said)
	return `{"model":"any","messages":[{"role":"user","content":` + string(text) + `}]` + fields + `}`
}

func (a *app) request(t *testing.T, method, path, key string, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, a.url+path, body)
	require.NoError(t, err)
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	return req
}

// raw makes a request and returns all that comes back, as it is on the wire, and how many informational
// answers (1xx) are ahead of the final one.
func (a *app) raw(t *testing.T, req *http.Request) (informational int, whole string) {
	t.Helper()
	conn, err := net.Dial("tcp", req.URL.Host)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	req.Close = true
	require.NoError(t, req.Write(conn))
	text, err := io.ReadAll(conn)
	require.NoError(t, err)
	return strings.Count("\n"+string(text), "\nHTTP/1.1 1"), string(text)
}

// open returns when the headers are there. Every request has a connection of its own, so that none
// idles on after its test.
func (a *app) open(t *testing.T, req *http.Request) *http.Response {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	client := &http.Client{Transport: transport, Timeout: 20 * time.Second, CheckRedirect: notFollowed}
	res, err := client.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { res.Body.Close() })
	return res
}

func notFollowed(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
