package main

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
	"github.com/tidwall/gjson"
)

const (
	maxQuote = 1 << 10 // how much of what was said the model heeds, in bytes
	maxSaid  = 10_000  // messages and parts of messages in a conversation; OpenAI takes 2,048 messages
)

// question is what the built-in model is asked, in whatever format.
type question struct {
	model     string
	said      string // by the user, last; at most maxQuote bytes
	maxTokens int    // of the reply; 0 is no limit
	stream    bool
	fields    fields
}

// readQuestion reads what all formats have in common. The limit is the first that there is of those named.
func readQuestion(c *gin.Context, limits []string, names ...string) (q question, problem *apiError) {
	names = append(append(names, "model", "stream", "n"), limits...)
	if q.fields, problem = readFields(c, names...); problem != nil {
		return q, problem
	}
	if q.model, problem = q.fields.text("model"); problem != nil {
		return q, problem
	}
	if q.model == "" {
		return q, invalid("model", "The request names no model.")
	}
	if q.stream, problem = q.fields.flag("stream"); problem != nil {
		return q, problem
	}
	if n, ok := q.fields["n"]; ok && n.Raw != "1" {
		return q, invalid("n", "This service gives one choice: n must be 1.")
	}
	for _, name := range limits {
		limit, problem := q.fields.positive(name)
		if problem != nil {
			return q, problem
		}
		if q.maxTokens == 0 {
			q.maxTokens = limit
		}
	}
	return q, nil
}

// hear reads a conversation: a list of messages, of which the user's last one is heeded.
func (q *question) hear(name string) *apiError {
	messages, ok := q.fields[name]
	if !ok {
		return invalid(name, "The request has no "+name+".")
	}
	if !messages.IsArray() {
		return wrongType(name)
	}
	var problem *apiError
	left := maxSaid
	messages.ForEach(func(_, message gjson.Result) bool {
		left--
		role, content := message.Get("role"), message.Get("content")
		switch {
		case !message.IsObject():
			problem = wrongType(name)
		case role.Exists() && role.Type != gjson.String && role.Type != gjson.Null:
			problem = wrongType(name + ".role")
		default:
			said, ok := textOf(content, &left)
			if !ok {
				problem = wrongType(name + ".content")
			} else if role.Str == "user" {
				q.said = said
			}
		}
		return problem == nil && left >= 0
	})
	if problem == nil && left < 0 {
		problem = invalid(name, fmt.Sprintf("The request has more than %d messages and parts of them.", maxSaid))
	}
	if problem == nil && left == maxSaid {
		problem = invalid(name, "The request has no "+name+".")
	}
	return problem
}

// textOf is the text of a message: a string, or a list of parts, of which only texts count. It reports
// whether it is either, or nothing. It takes the parts from those that are left.
func textOf(content gjson.Result, left *int) (text string, ok bool) {
	switch {
	case content.Type == gjson.Null:
		return "", true
	case content.Type == gjson.String:
		return quote(content.Str), true
	case !content.IsArray():
		return "", false
	}
	ok = true
	content.ForEach(func(_, part gjson.Result) bool {
		said := part.Get("text")
		ok = part.IsObject() && (said.Type == gjson.Null || said.Type == gjson.String)
		if said.Str != "" && len(text) < maxQuote {
			text = quote(text + "\n" + clip(said.Str, maxQuote))
		}
		*left--
		return ok && *left >= 0
	})
	return text, ok
}

// quote is as much of a text as the model heeds.
func quote(text string) string { return strings.ToValidUTF8(clip(text, maxQuote), "\uFFFD") }

// clip shortens text to at most size bytes without cutting a character in two.
func clip(text string, size int) string {
	if len(text) <= size {
		return text
	}
	for end := size; end > size-utf8.UTFMax && end > 0; end-- {
		if utf8.RuneStart(text[end]) {
			return text[:end]
		}
	}
	return text[:size]
}
