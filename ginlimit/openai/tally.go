package openai

import (
	"strings"

	"github.com/tidwall/gjson"
)

// tally is what an answer contains: the usage, and the text in case there is no usage.
type tally struct {
	usage     usage
	final     bool // the usage is that of the whole answer
	onlyCount bool // the answer is only the length of a prompt; no model has read it
	model     string
	text      []byte // the first tokenizedBytes of it
	textBytes int    // all of it
}

// read reads one JSON value: a whole answer, or the data of an event. It reports whether that is OpenAI's
// chunk of a stream that holds only the usage.
func (t *tally) read(text string) (usageOnly bool) {
	root := gjson.Parse(text)
	if !root.IsObject() {
		return false
	}
	withUsage, withoutChoices := false, false
	root.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "model":
			t.setModel(v)
		case "usage": // all but the two below
			withUsage = t.usage.add(v)
			t.final = t.final || withUsage
		case "message": // Anthropic's first event: the output is not known yet
			t.usage.add(v.Get("usage"))
			t.setModel(v.Get("model"))
		case "response": // OpenAI's responses: null until the last event
			t.final = t.usage.add(v.Get("usage")) || t.final
			t.setModel(v.Get("model"))
		case "choices":
			withoutChoices = v.IsArray() && !v.Get("0").Exists()
			t.collect(v, 0)
		case "input_tokens":
			t.onlyCount = v.Type == gjson.Number
		case "delta", "content", "output":
			t.collect(v, 0)
		}
		return true
	})
	return withUsage && withoutChoices
}

// readExcerpt searches the kept parts of a long answer or event for the usage.
func (t *tally) readExcerpt(e *excerpt) {
	e.find("usage", func(v gjson.Result) bool {
		found := t.usage.add(v)
		t.final = t.final || found
		return found
	})
	e.find("model", func(v gjson.Result) bool {
		t.setModel(v)
		return v.Type == gjson.String
	})
}

func (t *tally) setModel(v gjson.Result) {
	if v.Type == gjson.String && v.Str != "" {
		t.model = v.Str
	}
}

// collect adds the text that the model wrote from choices, deltas and blocks.
func (t *tally) collect(v gjson.Result, depth int) {
	switch {
	case depth > maxDepth:
	case v.Type == gjson.String:
		t.addText(v.Str)
	case v.IsArray():
		v.ForEach(func(_, item gjson.Result) bool {
			t.collect(item, depth+1)
			return true
		})
	case v.IsObject():
		v.ForEach(func(key, value gjson.Result) bool {
			switch key.Str {
			case "content", "text", "refusal", "reasoning", "reasoning_content", "thinking", "partial_json",
				"arguments", "name", "summary", "message", "delta", "tool_calls", "function", "function_call",
				"custom":
				t.collect(value, depth+1)
			case "input": // of a tool, an object or text
				t.addText(value.String())
			}
			return true
		})
	}
}

func (t *tally) addText(text string) {
	t.textBytes += len(text)
	t.text = append(t.text, text[:min(len(text), tokenizedBytes-len(t.text))]...)
}

// textTokens counts the text.
func (t *tally) textTokens(c counter) int {
	if t.textBytes == 0 {
		return 0
	}
	tokens := c.count([]string{strings.ToValidUTF8(string(t.text), "")})
	return max(1, int(int64(tokens)*int64(t.textBytes)/int64(len(t.text))))
}
