package openai

import (
	"bufio"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"
)

// maxHeld bounds how much of an event is held back. The chunk with the usage is far smaller.
const maxHeld = 64 << 10

// writer passes everything on as it comes and lets answer read it. If Meter asked for the usage, and not the
// client, each event of a stream is held back until it is complete, and the event with the usage is dropped.
type writer struct {
	gin.ResponseWriter
	answer   answer
	strips   bool // once the header is sent: this is a stream, and the client has not asked for the usage
	sent     bool // the header is
	hijacked bool

	held    []byte // not passed on yet
	whole   int    // how much of it is complete events
	partly  bool   // the beginning of the present event has been passed on
	dropped bool   // the last event was
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) WriteHeader(status int) {
	if status >= http.StatusOK && !w.sent && w.strips && isStream(w.Header()) {
		w.Header().Del("Content-Length") // other writers than Gin's send the header now
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) WriteHeaderNow() {
	w.prepare()
	w.ResponseWriter.WriteHeaderNow()
}

func (w *writer) Flush() {
	w.prepare()
	w.ResponseWriter.Flush()
}

func (w *writer) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

func (w *writer) Write(p []byte) (int, error) {
	w.prepare()
	w.answer.decide(p)
	if !w.strips || w.answer.form == document {
		w.answer.add(p)
		return w.ResponseWriter.Write(p)
	}
	w.ResponseWriter.WriteHeaderNow() // so that Written is true, even if nothing is written yet
	w.hold(p)
	if err := w.release(w.whole); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Hijack takes over the connection; what is written then is not seen.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.hijacked = true
	return w.ResponseWriter.Hijack()
}

// prepare reads the header before it is sent.
func (w *writer) prepare() {
	if w.sent {
		return
	}
	w.sent = true
	w.answer.setHeader(w.Header())
	w.strips = w.strips && isStream(w.Header()) && w.answer.form == undecided
	if w.strips {
		w.Header().Del("Content-Length") // the client gets fewer bytes
	}
}

// hold takes the next bytes of a stream, and drops the event that holds only the usage.
func (w *writer) hold(p []byte) {
	a := &w.answer
	a.size += len(p)
	for len(p) > 0 {
		if a.events.afterCR && p[0] == '\n' && len(w.held) == w.whole && !w.partly {
			a.events.afterCR = false // it belongs to the event before
			if !w.dropped {
				w.held = append(w.held, '\n')
				w.whole++
			}
			p = p[1:]
			continue
		}
		n, ended := a.events.next(p)
		w.held = append(w.held, p[:n]...)
		p = p[n:]
		w.dropped = false
		if ended {
			usageOnly := a.endEvent()
			if w.dropped = usageOnly && !w.partly; w.dropped {
				w.held = w.held[:w.whole]
			}
			w.whole, w.partly = len(w.held), false
		}
	}
	if len(w.held)-w.whole > maxHeld {
		w.whole, w.partly = len(w.held), true
	}
}

// release passes on the first n bytes of what is held.
func (w *writer) release(n int) error {
	var err error
	if n > 0 {
		_, err = w.ResponseWriter.Write(w.held[:n])
	}
	w.held = append(w.held[:0], w.held[n:]...)
	w.whole = 0
	return err
}

// finish reads what is left. If a stream did not end with a blank line, the rest is passed on.
func (w *writer) finish() (rest int) {
	if usageOnly := w.answer.end(); usageOnly && !w.partly {
		w.held = w.held[:0]
	}
	return len(w.held)
}

func isStream(h http.Header) bool {
	var a answer
	a.setHeader(h)
	return a.mediaType == "text/event-stream"
}
