package main

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

const (
	// stallTime is how long a client may leave a piece of an answer untaken. A stream ends then, and what it
	// holds, such as a connection to the provider, is free. It is no bound for an answer or a pause in one.
	stallTime  = time.Minute
	stallPiece = 16 << 10 // bytes
)

// endStalled gives every write the time for a stalled client, and no more.
func endStalled(stall time.Duration) gin.HandlerFunc {
	return func(c *gin.Context) {
		w := stallWriter{c.Writer, http.NewResponseController(c.Writer), stall}
		c.Writer = w
		c.Next()
		w.renew() // the server writes what is left when the handlers have returned
	}
}

// stallWriter renews the connection's write deadline. When it passes, the write fails, and the server ends
// the request's context.
type stallWriter struct {
	gin.ResponseWriter
	connection *http.ResponseController
	stall      time.Duration
}

func (w stallWriter) renew() {
	_ = w.connection.SetWriteDeadline(time.Now().Add(w.stall)) // a writer of a test has none
}

func (w stallWriter) Write(p []byte) (written int, err error) {
	for {
		piece := p[:min(len(p), stallPiece)]
		w.renew()
		n, err := w.ResponseWriter.Write(piece)
		written, p = written+n, p[len(piece):]
		if err != nil || len(p) == 0 {
			return written, err
		}
	}
}

func (w stallWriter) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

func (w stallWriter) Flush() {
	w.renew()
	w.ResponseWriter.Flush()
}
