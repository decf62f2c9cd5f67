package openai

import "bytes"

// events splits an event stream into events; the bytes may come in any portions. It keeps an event's data:
// that of each "data:" line, joined by line feeds. Lines end with LF, CR or CRLF, as in the standard.
type events struct {
	data    excerpt
	hasData bool

	state   lineState
	name    []byte // of the field, as far as it is needed
	later   bool   // not the first line
	afterCR bool   // if a line feed comes next, it belongs to the line before
}

type lineState int

const (
	inName lineState = iota
	beforeValue
	inValue
	inOther // of a field that is not data, or a comment
)

var byteOrderMark = []byte("\uFEFF")

const maxName = 8 // more than "data" after a byte order mark

// next takes bytes from p up to the end of an event, and reports how many and whether an event ends there.
// Then the caller looks at data and calls reset.
func (e *events) next(p []byte) (n int, ended bool) {
	for n < len(p) {
		if e.afterCR {
			e.afterCR = false
			if p[n] == '\n' {
				n++
				continue
			}
		}
		switch e.state {
		case inName:
			c := p[n]
			n++
			switch {
			case c == '\n', c == '\r':
				if e.endLine(c) {
					return e.swallow(p, n), true
				}
			case c == ':' && e.field() == "data":
				e.state = beforeValue
			case c == ':', len(e.name) >= maxName:
				e.state = inOther
			default:
				e.name = append(e.name, c)
			}
		case beforeValue:
			e.addLine()
			e.state = inValue
			if p[n] == ' ' {
				n++
			}
		default:
			end := lineEnd(p[n:])
			if e.state == inValue {
				e.data.add(p[n : n+end])
			}
			if n += end; n < len(p) {
				e.endLine(p[n])
				n++
			}
		}
	}
	return n, false
}

// endLine reports whether the line was blank.
func (e *events) endLine(c byte) (blank bool) {
	blank = e.state == inName && e.field() == ""
	if e.state == beforeValue || e.state == inName && e.field() == "data" {
		e.addLine() // empty
	}
	e.state, e.name, e.later, e.afterCR = inName, e.name[:0], true, c == '\r'
	return blank
}

// swallow skips the line feed of a CRLF if it has arrived already.
func (e *events) swallow(p []byte, n int) int {
	if e.afterCR && n < len(p) {
		e.afterCR = false
		if p[n] == '\n' {
			n++
		}
	}
	return n
}

func (e *events) field() string {
	if !e.later {
		return string(bytes.TrimPrefix(e.name, byteOrderMark))
	}
	return string(e.name)
}

func (e *events) addLine() {
	if e.hasData {
		e.data.add([]byte{'\n'})
	}
	e.hasData = true
}

func (e *events) reset() {
	e.data.reset()
	e.hasData = false
}

// lineEnd returns where the line ends in p, or its length.
func lineEnd(p []byte) int {
	end := bytes.IndexByte(p, '\n')
	if end < 0 {
		end = len(p)
	}
	if cr := bytes.IndexByte(p[:end], '\r'); cr >= 0 {
		return cr
	}
	return end
}
