package openai

import (
	"strings"

	"github.com/tidwall/gjson"
)

// streamOptions is the field of a body that asks for a chunk with the usage at the end of a stream.
type streamOptions struct {
	value        gjson.Result // the object, with its place in the body
	includeUsage gjson.Result // in it
}

func readStreamOptions(value gjson.Result) streamOptions {
	s := streamOptions{value: value}
	if value.IsObject() {
		value.ForEach(func(key, v gjson.Result) bool {
			if key.Str == "include_usage" {
				s.includeUsage = v
			}
			return true
		})
	}
	return s
}

// asksForUsage returns the body of a streamed completion, changed so that it asks for the usage, and whether
// it was changed. All other bytes stay as they are.
func (r *request) asksForUsage(body string) (string, bool) {
	if r.asked || !r.stream || r.format != chat && r.format != completions {
		return body, false
	}
	const ask = `"include_usage":true`
	options, asked := r.streamOptions.value, r.streamOptions.includeUsage
	switch {
	case !options.Exists():
		end := strings.LastIndexByte(body, '}')
		return body[:end] + `,"stream_options":{` + ask + `}` + body[end:], true
	case options.Type == gjson.Null:
		return splice(body, options, "{"+ask+"}"), true
	case !options.IsObject(), asked.Type == gjson.True:
		return body, false
	case asked.Exists():
		return splice(body, asked, "true"), true
	}
	end := options.Index + len(options.Raw) - 1
	if strings.TrimSpace(options.Raw[1:len(options.Raw)-1]) != "" {
		return body[:end] + "," + ask + body[end:], true
	}
	return body[:end] + ask + body[end:], true
}

// splice replaces old by text.
func splice(body string, old gjson.Result, text string) string {
	return body[:old.Index] + text + body[old.Index+len(old.Raw):]
}
