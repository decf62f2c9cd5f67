package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/gin-tiers/ratelimit/ginlimit"
)

const requestIDHeader = "X-Request-Id"

// newLogger is what LOG_FORMAT asks for; nil is Go's own format.
func newLogger(format string, w io.Writer) (*slog.Logger, error) {
	switch format {
	case "", "text":
		return nil, nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, nil)), nil
	}
	return nil, fmt.Errorf("LOG_FORMAT %q: want text or json", format)
}

// entryKey finds a request's entry in its context.
type entryKey struct{}

// entry is what the limiter decided about a request.
type entry struct {
	event ginlimit.Event
	known bool
}

// noteDecision is the limiter's observer. Of several events the last one counts: what the failure policy did
// comes after the store's error.
func noteDecision(ctx context.Context, e ginlimit.Event) {
	if noted, ok := ctx.Value(entryKey{}).(*entry); ok {
		noted.event, noted.known = e, true
	}
}

// logRequest writes one line for a request when its answer is over, and gives it an id. The line has the
// route's template in place of the path, and no header, user or body, so that no secret gets there. The id is
// the provider's where the request went there and it has given one: it is what the caller sees.
func logRequest(c *gin.Context) {
	began, noted, id := time.Now(), &entry{}, uuid.NewString()
	c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), entryKey{}, noted))
	w := idWriter{c.Writer, c, id}
	c.Writer = w
	defer func() {
		attrs := []slog.Attr{
			slog.String("id", clip(cmp.Or(w.Header().Get(requestIDHeader), id), 100)),
			slog.String("method", clip(c.Request.Method, 20)),
			slog.String("route", cmp.Or(c.FullPath(), "none")),
			slog.Int("status", w.Status()),
		}
		if noted.known {
			e := noted.event
			attrs = append(attrs, slog.String("tier", string(e.Tier)), slog.String("decision", string(e.Outcome)),
				slog.Int("wait", wait(e)))
			if e.Decision.Limit != 0 {
				attrs = append(attrs, slog.String("window", eventWindow(e)))
			}
		}
		attrs = append(attrs, slog.Int64("ms", time.Since(began).Milliseconds()))
		slog.LogAttrs(c.Request.Context(), slog.LevelInfo, "request", attrs...)
	}()
	c.Next()
}

// eventWindow names the window of an event's decision as GET /v1/usage does.
func eventWindow(e ginlimit.Event) string {
	if e.Outcome == ginlimit.UpstreamFull {
		return "upstream-" + e.Decision.Name()
	}
	return e.Decision.Name()
}

// wait is how many seconds the caller was asked to wait.
func wait(e ginlimit.Event) int {
	switch e.Outcome {
	case ginlimit.Rejected, ginlimit.UpstreamFull:
		return e.Decision.RetryAfterSeconds()
	}
	return 0
}

// forwardedKey marks a request that went to the provider, in the gin.Context.
type forwardedKey struct{}

// idWriter names the request in this service's answers. A provider's answer has the provider's id or none.
type idWriter struct {
	gin.ResponseWriter
	c  *gin.Context
	id string
}

func (w idWriter) name() {
	if _, forwarded := w.c.Get(forwardedKey{}); !forwarded && !w.Written() {
		w.Header().Set(requestIDHeader, w.id)
	}
}

func (w idWriter) WriteHeader(status int) {
	if status >= http.StatusOK {
		w.name()
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w idWriter) Write(p []byte) (int, error) {
	w.name()
	return w.ResponseWriter.Write(p)
}

func (w idWriter) Flush() {
	w.name()
	w.ResponseWriter.Flush()
}

// Unwrap lets http.ResponseController reach the connection.
func (w idWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
