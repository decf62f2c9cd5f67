package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"github.com/gin-gonic/gin"
)

// maxBody is far above any conversation, in bytes.
const maxBody = 1 << 20

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
