package main

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"

	"github.com/gin-gonic/gin"
)

// privateHeaders are between the caller and this service: who the caller is, which account pays, and
// what concerns this connection only.
var privateHeaders = []string{
	"Authorization", "Api-Key", "X-Api-Key", "Cookie", "Openai-Organization", "Openai-Project",
	"Connection", "Upgrade", "Te", "Expect",
}

// upstream is an OpenAI-compatible provider. It gets the callers' requests, and its answers go back as they
// come. Its own 429 passes through, with its Retry-After.
type upstream struct {
	proxy       *httputil.ReverseProxy
	refused     logRate // of lines about it
	unreachable logRate
}

// newUpstream takes a base URL as OpenAI SDKs do, such as https://api.openai.com/v1.
func newUpstream(base *url.URL, apiKey string) *upstream {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 100 // all of them go to one host
	transport.DisableCompression = true // what the caller did not ask to be compressed stays as it is
	u := &upstream{}
	u.proxy = &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1, // flush every chunk of a stream
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(base)
			if r.Out.Method == http.MethodHead {
				r.Out.Method = http.MethodGet // many providers know no HEAD
			}
			for _, name := range privateHeaders {
				r.Out.Header.Del(name)
			}
			if apiKey != "" {
				r.Out.Header.Set("Authorization", "Bearer "+apiKey)
			}
		},
		ModifyResponse: func(res *http.Response) error {
			if err := refusalIn(res); err != nil {
				return err
			}
			keepAnswerHeaders(res)
			return nil
		},
		ErrorHandler: u.fail,
	}
	return u
}

func (u *upstream) chat(c *gin.Context)       { u.forward(c, url.URL{Path: "/chat/completions"}) }
func (u *upstream) listModels(c *gin.Context) { u.forward(c, url.URL{Path: "/models"}) }

func (u *upstream) showModel(c *gin.Context) {
	path, ok := modelPath(c)
	if !ok {
		abort(c, errModelNotFound)
		return
	}
	u.forward(c, path)
}

// forward sends the request to a path below the base URL. No other part of the caller's path goes there.
func (u *upstream) forward(c *gin.Context, path url.URL) {
	path.RawQuery = c.Request.URL.RawQuery
	req := c.Request.WithContext(c.Request.Context()) // a copy; middleware that follows sees its own path
	req.URL = &path
	u.proxy.ServeHTTP(finalWriter{c.Writer, c.Writer.Header().Clone(), req.Method == http.MethodHead}, req)
}

// fail answers for a provider that gave no answer, or none that is for the caller.
func (u *upstream) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // the client has left
	}
	if refused, ok := errors.AsType[refusal](err); ok {
		if u.refused.allow() {
			slog.Error("the provider refuses this service", "status", refused.status)
		}
		errUpstreamRefused.writeTo(w)
		return
	}
	if u.unreachable.allow() {
		slog.Error("the provider cannot be reached", "error", err)
	}
	errUpstreamUnreachable.writeTo(w)
}
