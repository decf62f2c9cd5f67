package main

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
)

// privateHeaders are between the caller and this service: who the caller is, which account pays, what
// concerns this connection only, and what might make a provider read a GET, which is not estimated, as a
// POST.
var privateHeaders = []string{
	"Authorization", "Api-Key", "X-Api-Key", "Cookie", "Openai-Organization", "Openai-Project",
	"Connection", "Upgrade", "Te", "Expect",
	"X-Http-Method-Override", "X-Http-Method", "X-Method-Override",
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
			switch {
			case apiKey == "":
			case r.In.Header.Get("Authorization") == "" && r.In.Header.Get("X-Api-Key") != "":
				r.Out.Header.Set("X-Api-Key", apiKey) // as Anthropic wants it, and the caller's SDK knows
			default:
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

// modelPaths are the routes that ask a model. By their names they stand in logs and metrics.
var modelPaths = []string{"/chat/completions", "/completions", "/embeddings", "/responses", "/messages"}

// backend forwards everything.
func (u *upstream) backend() backend {
	b := backend{asking: map[string]gin.HandlerFunc{}, other: u.other}
	for _, path := range modelPaths {
		b.asking[path] = func(c *gin.Context) { u.forward(c, url.URL{Path: path}) }
	}
	b.models.list = func(c *gin.Context) { u.forward(c, url.URL{Path: "/models"}) }
	b.models.show = u.showModel
	return b
}

func (u *upstream) showModel(c *gin.Context) {
	path, ok := modelPath(c)
	if !ok {
		abort(c, errModelNotFound)
		return
	}
	u.forward(c, path)
}

// forwarded are the methods that a provider has. TRACE, say, would show the owner's key to the caller.
var forwarded = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
	http.MethodDelete}

// other forwards what this service has no route for.
func (u *upstream) other(c *gin.Context) {
	path, _ := strings.CutPrefix(c.Request.URL.Path, "/v1/")
	switch {
	case !staysBelow(path):
		abort(c, errNotFound)
	case path == "usage", !slices.Contains(forwarded, c.Request.Method):
		abort(c, errMethodNotAllowed)
	default:
		c.Writer.Header().Del("Allow") // of this service's own routes
		u.forward(c, url.URL{Path: "/" + path})
	}
}

// forward sends the request to a path below the base URL. No other part of the caller's path goes there.
func (u *upstream) forward(c *gin.Context, path url.URL) {
	c.Set(forwardedKey{}, true)
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
