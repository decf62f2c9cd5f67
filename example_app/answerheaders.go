package main

import (
	"io"
	"maps"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"
)

// answerHeaders are what the caller gets of a provider's headers: what the content is, by which ids the
// provider can be asked about it, and how long it took. All others stay here. They may speak of the
// provider's host or of the owner's account, and new ones come without notice.
var answerHeaders = []string{
	"Content-Type", "Content-Length", "Content-Encoding", "Content-Disposition", "Content-Language", "Etag",
	"X-Request-Id", "Request-Id",
	"Openai-Processing-Ms", "Server-Timing",
}

// retryHeaders say when to come back. They are the provider's word on a call that is worth repeating.
var retryHeaders = []string{"Retry-After", "Retry-After-Ms", "X-Should-Retry"}

// keepAnswerHeaders drops what the caller does not get, trailers too: by that door any header could come.
func keepAnswerHeaders(res *http.Response) {
	worthRepeating := res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= 500
	maps.DeleteFunc(res.Header, func(name string, _ []string) bool {
		return !slices.Contains(answerHeaders, name) && !(worthRepeating && slices.Contains(retryHeaders, name))
	})
	res.Trailer = nil
	res.Body = withoutTrailer{res.Body, res}
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

// finalWriter sends one answer, the final one. An informational one (103 and its like) stays here, with its
// headers. ReverseProxy clears all headers after it, so this service's own are put back.
type finalWriter struct {
	gin.ResponseWriter
	own      http.Header
	headOnly bool
}

func (w finalWriter) WriteHeader(status int) {
	if status < 200 {
		return
	}
	maps.Copy(w.Header(), w.own)
	w.ResponseWriter.WriteHeader(status)
}

// Write drops the body of an answer to HEAD. ReverseProxy takes the server's error about it for a failure.
func (w finalWriter) Write(p []byte) (int, error) {
	if w.headOnly {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}
