package openai

import (
	"bytes"
	"compress/gzip"
	"io"
	"mime"
	"net/http"
	"strings"
)

// answer reads what a handler writes.
type answer struct {
	tally
	form       form
	expected   form // by the request: a stream or a document
	compressed bool
	mediaType  string
	events     events
	document   excerpt
	size       int  // bytes
	unreadable bool // compressed in an unknown way, or too long to be uncompressed
}

type form int

const (
	undecided form = iota
	document       // JSON, or text
	stream         // events
)

// setHeader is called when the header is sent.
func (a *answer) setHeader(h http.Header) {
	a.mediaType, _, _ = mime.ParseMediaType(h.Get("Content-Type"))
	switch strings.ToLower(strings.TrimSpace(h.Get("Content-Encoding"))) {
	case "", "identity":
	case "gzip", "x-gzip":
		a.compressed, a.form = true, document
	default:
		a.unreadable, a.form = true, document
	}
}

// decide finds out the form, if it is not known yet, by the media type and the first bytes: no line of an
// event stream begins like JSON.
func (a *answer) decide(p []byte) {
	if a.form != undecided {
		return
	}
	p = bytes.TrimLeft(p, " \t\r\n")
	switch {
	case len(p) == 0:
	case p[0] == '{', p[0] == '[':
		a.form = document
	case a.mediaType == "text/event-stream", a.expected == stream && a.mediaType != "application/json":
		a.form = stream
	default:
		a.form = document
	}
}

// add takes the next bytes.
func (a *answer) add(p []byte) {
	a.decide(p)
	a.size += len(p)
	switch {
	case a.unreadable:
	case a.form == stream:
		for len(p) > 0 {
			n, ended := a.events.next(p)
			p = p[n:]
			if ended {
				a.endEvent()
			}
		}
	default:
		a.document.add(p)
	}
}

// endEvent reads the complete event, and reports whether it holds only the usage.
func (a *answer) endEvent() (usageOnly bool) {
	switch {
	case !a.events.hasData:
		return false
	case a.events.data.cut:
		a.readExcerpt(&a.events.data)
	default:
		usageOnly = a.read(a.events.data.text())
	}
	a.events.reset()
	return usageOnly
}

// end reads what is left after the handler has returned. It reports whether that is an event that holds only
// the usage.
func (a *answer) end() (usageOnly bool) {
	switch {
	case a.unreadable:
	case a.form == stream:
		return a.endEvent()
	case a.compressed:
		a.uncompress()
	case a.document.cut:
		a.readExcerpt(&a.document)
	default:
		a.read(a.document.text())
	}
	return false
}

// uncompress reads a compressed answer. If the answer was cut off, it reads what arrived.
func (a *answer) uncompress() {
	if a.document.cut {
		a.unreadable = true
		return
	}
	inner := answer{expected: a.expected, mediaType: a.mediaType}
	unzipped, err := gzip.NewReader(strings.NewReader(a.document.text()))
	if err != nil {
		a.unreadable = true
		return
	}
	const most = 64 << 20 // uncompressed
	_, _ = io.Copy(writerFunc(inner.add), io.LimitReader(unzipped, most))
	inner.end()
	a.tally, a.size, a.form = inner.tally, inner.size, inner.form
}

type writerFunc func(p []byte)

func (f writerFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}
