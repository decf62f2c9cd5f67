package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"github.com/gin-gonic/gin"
)

var errUpstreamUnreachable = &apiError{http.StatusBadGateway, "The model provider cannot be reached. Try again shortly.",
	"api_error", nil, new("upstream_unreachable")}

// privateHeaders are between the caller and this service: who the caller is, which account pays, and
// what concerns this connection only.
var privateHeaders = []string{
	"Authorization", "Api-Key", "X-Api-Key", "Cookie", "Openai-Organization", "Openai-Project",
	"Connection", "Upgrade", "Te", "Expect",
}

// forward hands requests to an OpenAI-compatible provider and its answers back as they come. The
// provider's own 429 passes through, its Retry-After with it.
func forward(base *url.URL, apiKey string) gin.HandlerFunc {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 100 // all of them go to one host
	transport.DisableCompression = true // what the caller did not ask to be compressed stays as it is
	proxy := &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1, // flush every chunk of a stream
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Path, r.Out.URL.RawPath = strings.TrimPrefix(r.In.URL.Path, "/v1"), "" // base ends in /v1 itself
			r.SetURL(base)
			for _, name := range privateHeaders {
				r.Out.Header.Del(name)
			}
			if apiKey != "" {
				r.Out.Header.Set("Authorization", "Bearer "+apiKey)
			}
		},
		ModifyResponse: func(res *http.Response) error {
			if res.StatusCode < 200 || res.StatusCode > 599 {
				return fmt.Errorf("provider answers with status %d", res.StatusCode)
			}
			keepAnswerHeaders(res)
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() != nil {
				return // the client has left
			}
			slog.Error("provider cannot be reached", "error", err)
			errUpstreamUnreachable.writeTo(w)
		},
	}
	return func(c *gin.Context) {
		proxy.ServeHTTP(finalWriter{c.Writer, c.Writer.Header().Clone()}, c.Request)
	}
}
