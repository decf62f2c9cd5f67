package openai

import (
	"strings"

	"github.com/tidwall/gjson"
)

const (
	headBytes   = 1 << 20
	tailBytes   = 64 << 10
	memberBytes = 16 << 10 // of a found member
	maxMembers  = 100      // of one name that are checked
)

// excerpt keeps the beginning and the end of a text, or all of it if it is short. Long answers hold images or
// vectors; the usage comes before or after these.
type excerpt struct {
	head, tail []byte
	cut        bool // bytes between head and tail are gone
}

func (e *excerpt) add(p []byte) {
	n := min(len(p), headBytes-len(e.head))
	e.head = append(e.head, p[:n]...)
	if p = p[n:]; len(p) == 0 {
		return
	}
	e.tail = append(e.tail, p[max(0, len(p)-tailBytes):]...)
	e.cut = e.cut || len(p) > tailBytes
	if over := len(e.tail) - tailBytes; over > tailBytes { // rarely, so that each byte is moved at most once
		e.tail = append(e.tail[:0], e.tail[over:]...)
		e.cut = true
	}
}

// text is all of it. It must not be cut.
func (e *excerpt) text() string {
	if len(e.tail) == 0 {
		return string(e.head)
	}
	return string(e.head) + string(e.tail)
}

// reset forgets everything. It keeps some memory for what comes next.
func (e *excerpt) reset() {
	if cap(e.head) > tailBytes {
		e.head = nil
	}
	e.head, e.tail, e.cut = e.head[:0], nil, false
}

// find calls f with the value of each member of that name in the kept parts of the JSON, the last one first,
// until f returns true. Quotation marks in strings are escaped, so what looks like a name is a name.
func (e *excerpt) find(name string, f func(value gjson.Result) bool) {
	quoted := `"` + name + `"`
	for _, part := range []string{string(e.tail), string(e.head)} {
		at := strings.LastIndex(part, quoted)
		for range maxMembers {
			if at < 0 {
				break
			}
			object := "{" + part[at:min(len(part), at+memberBytes)]
			if v := gjson.Get(object, name); v.Exists() && f(v) {
				return
			}
			at = strings.LastIndex(part[:at], quoted)
		}
	}
}
