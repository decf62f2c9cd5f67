package openai

import (
	"strings"

	"github.com/tidwall/gjson"
)

const (
	imageTokens     = 1600 // about the most that current models count for a scaled-down image
	attachmentBytes = 64   // bytes of base64 per token of audio, video and documents; imageTokens at least
	messageTokens   = 3    // what the format adds to each message, beside its role
	maxDepth        = 32   // of nested values; deeper ones count as text
)

// content is what a prompt consists of: texts to be tokenized, and tokens of what is not text.
type content struct {
	texts  []string
	tokens int
}

// add walks a JSON value. Strings are text, except names of types, ids, and base64.
func (p *content) add(v gjson.Result, depth int) {
	switch {
	case depth > maxDepth:
		p.addText(v.Raw)
	case v.IsArray():
		v.ForEach(func(_, item gjson.Result) bool {
			p.add(item, depth+1)
			return true
		})
	case v.IsObject():
		if p.addMedia(v) {
			return
		}
		v.ForEach(func(key, value gjson.Result) bool {
			switch key.Str {
			case "type", "id", "call_id", "tool_call_id", "tool_use_id", "status", "cache_control", "signature",
				"encrypted_content":
			case "input": // a tool's arguments, which the model reads as JSON
				p.addText(value.Raw)
			default:
				p.add(value, depth+1)
			}
			return true
		})
	case v.Type == gjson.String:
		if isDataURL(v.Str) {
			p.tokens += imageTokens
		} else {
			p.addText(v.Str)
		}
	case v.Type != gjson.Null:
		p.addText(v.Raw)
	}
}

func (p *content) addText(text string) {
	if text != "" {
		p.texts = append(p.texts, text)
	}
}

// addMedia adds an object if it is an image or an attachment, and reports whether it is.
func (p *content) addMedia(v gjson.Result) bool {
	switch v.Get("type").Str {
	case "image", "image_url", "input_image":
		p.tokens += imageTokens
	case "document":
		if source := v.Get("source.type").Str; source == "text" || source == "content" {
			return false
		}
		p.addAttachment(v)
	case "audio", "input_audio", "file", "input_file", "video", "video_url", "input_video", "base64":
		p.addAttachment(v)
	default:
		return false
	}
	return true
}

func (p *content) addAttachment(v gjson.Result) {
	p.tokens += max(imageTokens, len(v.Raw)/attachmentBytes)
}

// addInput adds a text, several texts, or tokens, and returns how many prompts that is.
func (p *content) addInput(v gjson.Result) (prompts int) {
	if !v.IsArray() {
		p.add(v, 0)
		return 1
	}
	if v.Get("0").Type == gjson.Number { // the tokens of one prompt
		p.tokens += strings.Count(v.Raw, ",") + 1
		return 1
	}
	v.ForEach(func(_, item gjson.Result) bool {
		prompts++
		if item.IsArray() && item.Get("0").Type == gjson.Number {
			p.tokens += strings.Count(item.Raw, ",") + 1
		} else {
			p.add(item, 0)
		}
		return true
	})
	return max(prompts, 1)
}

// addMessages adds a conversation.
func (p *content) addMessages(v gjson.Result) {
	v.ForEach(func(_, message gjson.Result) bool {
		p.tokens += messageTokens
		p.add(message, 0)
		return true
	})
}

func isDataURL(s string) bool {
	return strings.HasPrefix(s, "data:") && strings.Contains(s[:min(len(s), 256)], ";base64,")
}
