package openai

import (
	"math"
	"strings"

	"github.com/tidwall/gjson"
)

// usage is what a provider reported. It keeps the largest value of each number: numbers in a stream only
// grow, and Anthropic's later events need not repeat earlier numbers.
type usage struct {
	input, output, total    reported
	cached                  reported // a part of input
	cacheRead, cacheWritten reported // beside input, as Anthropic counts
	implausible             bool     // something was clamped
}

type reported struct {
	tokens int
	known  bool
}

// add reads a usage object, and reports whether it is one and is complete.
func (u *usage) add(v gjson.Result) bool {
	if !v.IsObject() || strings.Count(v.Raw, "{") != strings.Count(v.Raw, "}") {
		return false
	}
	any := false
	v.ForEach(func(key, value gjson.Result) bool {
		known := true
		switch key.Str {
		case "prompt_tokens", "input_tokens":
			u.take(&u.input, value)
		case "completion_tokens", "output_tokens":
			u.take(&u.output, value)
		case "total_tokens":
			u.take(&u.total, value)
		case "prompt_tokens_details", "input_tokens_details":
			u.take(&u.cached, value.Get("cached_tokens"))
		case "prompt_cache_hit_tokens": // DeepSeek's
			u.take(&u.cached, value)
		case "cache_read_input_tokens":
			u.take(&u.cacheRead, value)
		case "cache_creation_input_tokens":
			u.take(&u.cacheWritten, value)
		default:
			known = false
		}
		any = any || known
		return true
	})
	return any
}

// take reads one number and clamps it: below zero to zero, above maxTokens to maxTokens.
func (u *usage) take(r *reported, v gjson.Result) {
	if !v.Exists() || v.Type == gjson.Null {
		return
	}
	if v.Type != gjson.Number || math.IsNaN(v.Num) {
		u.implausible = true
		return
	}
	n := math.Ceil(min(max(v.Num, 0), maxTokens))
	if v.Num < 0 || v.Num > maxTokens {
		u.implausible = true
	}
	r.tokens, r.known = max(r.tokens, int(n)), true
}

// sums returns the tokens of input, the part of input that was in the provider's cache, and the tokens of
// output. The input is -1 if it was not reported.
func (u *usage) sums() (input, cached, output int) {
	output = u.output.tokens
	switch {
	case u.input.known, u.cacheRead.known, u.cacheWritten.known:
		input = u.input.tokens + u.cacheRead.tokens + u.cacheWritten.tokens
		output = max(output, u.total.tokens-input) // some count reasoning tokens only in the total
	case u.total.known:
		input = max(u.total.tokens-output, 0)
	default:
		return -1, 0, output
	}
	return input, min(u.cached.tokens+u.cacheRead.tokens, input), output
}
