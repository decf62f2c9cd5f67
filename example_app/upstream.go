package main

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
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
			res.Header.Del("Trailer") // a trailer would bring the headers that are kept here by the back door
			res.Trailer = nil
			res.Body = withoutTrailer{res.Body, res}
			maps.DeleteFunc(res.Header, func(name string, _ []string) bool {
				return name == "Set-Cookie" || strings.HasPrefix(name, "X-Ratelimit-")
			})
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

// withoutTrailer drops what the provider sends behind the body.
type withoutTrailer struct {
	io.ReadCloser
	res *http.Response
}

func (b withoutTrailer) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.res.Trailer = nil
	}
	return n, err
}

// finalWriter puts this service's own headers, the limits, on the final answer: ReverseProxy clears
// them when the provider sends an informational one (103) before.
type finalWriter struct {
	gin.ResponseWriter
	own http.Header
}

func (w finalWriter) WriteHeader(status int) {
	maps.Copy(w.Header(), w.own)
	w.ResponseWriter.WriteHeader(status)
}
