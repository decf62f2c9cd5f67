package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

const (
	maxBody  = 1 << 20          // far above any conversation of text, in bytes
	bodyTime = 30 * time.Second // how long a client may take to send it
)

// boundBodies ends a connection whose client does not send its body in time, whether a handler reads
// it or the server does before the next request. Once the body is there, an answer may take longer.
func boundBodies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != http.NoBody {
			connection := http.NewResponseController(w)
			_ = connection.SetReadDeadline(time.Now().Add(bodyTime)) // a writer of a test has none
			r.Body = timedBody{r.Body, connection}
		}
		next.ServeHTTP(w, r)
	})
}

type timedBody struct {
	io.ReadCloser
	connection *http.ResponseController
}

func (b timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.connection.SetReadDeadline(time.Time{})
	}
	return n, err
}

// readBody reads the whole body before the handler runs, so that one that is too large reaches
// neither the model nor a provider. The limit is http.MaxBytesHandler's, outside of Gin: there it
// also makes the server hang up slowly enough for clients that are still sending to see the answer.
func readBody(c *gin.Context) {
	body, err := io.ReadAll(c.Request.Body)
	switch _, tooLarge := errors.AsType[*http.MaxBytesError](err); {
	case tooLarge:
		abort(c, errBodyTooLarge)
	case err != nil:
		abort(c, errNotJSON)
	default:
		c.Request.Body = io.NopCloser(bytes.NewReader(body))
		c.Request.ContentLength = int64(len(body))
	}
}
