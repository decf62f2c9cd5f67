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
	defaultMaxBody = 32 << 20 // images travel as base64; in bytes
	largestMaxBody = 1 << 30  // a body is held in memory

	// How long a client may take to send its body: bodyTime, and what a line of bodyRate needs for it.
	bodyTime = 30 * time.Second
	bodyRate = 64 << 10 // bytes a second
)

// boundBodies ends a connection whose client does not send its body in time, whether a handler reads
// it or the server does before the next request. Once the body is there, an answer may take longer.
func boundBodies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != http.NoBody {
			body := &timedBody{ReadCloser: r.Body, connection: http.NewResponseController(w)}
			body.extend(time.Now().Add(bodyTime))
			r.Body = body
		}
		next.ServeHTTP(w, r)
	})
}

// timedBody moves the deadline as the body arrives: time is given for what was sent, not for what was
// announced.
type timedBody struct {
	io.ReadCloser
	connection *http.ResponseController
	deadline   time.Time
	earned     int // bytes that have not yet moved the deadline
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if seconds := (b.earned + n) / bodyRate; seconds > 0 {
		b.extend(b.deadline.Add(time.Duration(seconds) * time.Second))
	}
	b.earned = (b.earned + n) % bodyRate
	if err == io.EOF {
		b.extend(time.Time{})
	}
	return n, err
}

func (b *timedBody) extend(deadline time.Time) {
	b.deadline = deadline
	_ = b.connection.SetReadDeadline(deadline) // a writer of a test has none
}

// readBody reads the whole body before the handler runs, so that one that is too large reaches neither the
// model nor a provider. It leaves the bytes under gin.BodyBytesKey, too. The limit is http.MaxBytesHandler's,
// outside of Gin: there it also makes the server hang up slowly enough for clients that are still sending to
// see the answer.
func readBody(c *gin.Context) {
	body, err := io.ReadAll(c.Request.Body)
	switch tooLarge, ok := errors.AsType[*http.MaxBytesError](err); {
	case ok:
		abort(c, bodyTooLarge(tooLarge.Limit))
	case err != nil:
		abort(c, errNotJSON)
	default:
		c.Set(gin.BodyBytesKey, body)
		c.Request.Body = io.NopCloser(bytes.NewReader(body))
		c.Request.ContentLength = int64(len(body))
		c.Request.TransferEncoding, c.Request.Trailer = nil, nil // it has a length now
	}
}
