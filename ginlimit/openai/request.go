package openai

import (
	"encoding/json"
	"math"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"
)

// format is a kind of request body.
type format int

const (
	unknown     format = iota // not JSON, or none of the others
	chat                      // OpenAI's chat completions
	completions               // OpenAI's legacy completions
	responses                 // OpenAI's responses
	embeddings                // OpenAI's embeddings
	messages                  // Anthropic's messages
)

const (
	maxTokens  = 100_000_000 // of one request, declared or reported: above every model's context
	maxChoices = 128         // OpenAI's own bound
)

// request is what a request body says about its cost. The zero value is a body of unknown content.
type request struct {
	format   format
	model    string
	stream   bool
	declared int // the largest output limit that it names; 0 = none
	choices  int // how many answers it asks for

	prompt  content
	counted int // tokens of the prompt; 0 = not counted yet

	streamOptions streamOptions
	asked         bool // the body was changed so that it asks for the usage
}

// promptTokens counts the prompt, once.
func (r *request) promptTokens(c counter) int {
	if r.counted == 0 && r.format != unknown {
		r.counted = max(1, min(r.prompt.tokens+c.count(r.prompt.texts), maxTokens))
		r.prompt = content{} // the texts are not needed any more
	}
	return r.counted
}

// outputTokens is how many tokens the answer may have.
func (r *request) outputTokens(o *options) int {
	if r.format == embeddings {
		return 0
	}
	limit := r.declared
	if limit == 0 {
		limit = o.defaultOutput
	}
	return min(limit*max(r.choices, 1), o.maxOutput) // below 2^63: a limit has 27 bits, choices 7 and prompts 25
}

// parse reads a request body. Names of fields are compared exactly. If a number is there twice, the larger
// one counts, because nobody knows which one the provider would take.
func parse(text string, r *http.Request) *request {
	if !json.Valid([]byte(text)) { // this also bounds the nesting of values
		return &request{}
	}
	root := gjson.Parse(text)
	if !root.IsObject() {
		return &request{}
	}
	req := &request{}
	fields := fields{}
	root.ForEach(func(key, value gjson.Result) bool {
		fields.add(req, key.Str, value)
		return true
	})
	req.format = fields.format(req.model, r)
	fields.fill(req)
	return req
}

// fields are the members of a body that show its format.
type fields struct {
	messages, input, prompt     gjson.Result
	system, instructions        gjson.Result
	tools                       []gjson.Result
	n                           int
	forResponses, forEmbeddings bool
	forAnthropic                bool
}

func (f *fields) add(req *request, name string, value gjson.Result) {
	switch name {
	case "model":
		req.model = value.Str
	case "stream":
		req.stream = value.Type == gjson.True
	case "stream_options":
		req.streamOptions = readStreamOptions(value)
	case "max_tokens", "max_completion_tokens", "max_output_tokens":
		req.declared = max(req.declared, wholeNumber(value, maxTokens))
		f.forResponses = f.forResponses || name == "max_output_tokens"
	case "n", "best_of":
		f.n = max(f.n, wholeNumber(value, maxChoices))
	case "messages":
		f.messages = value
	case "input":
		f.input = value
	case "prompt":
		f.prompt = value
	case "system":
		f.system, f.forAnthropic = value, true
	case "instructions":
		f.instructions, f.forResponses = value, true
	case "tools", "functions", "response_format":
		f.tools = append(f.tools, value)
		f.forAnthropic = f.forAnthropic || value.Get("0.input_schema").Exists()
	case "text": // of responses: the format of the answer
		f.tools = append(f.tools, value)
		f.forResponses = true
	case "reasoning", "previous_response_id", "conversation", "include", "truncation":
		f.forResponses = true
	case "encoding_format", "dimensions", "input_type":
		f.forEmbeddings = true
	case "stop_sequences":
		f.forAnthropic = true
	}
}

// format decides by the fields. Chat completions look like Anthropic's messages, and responses like
// embeddings: headers, path or model then decide.
func (f *fields) format(model string, r *http.Request) format {
	switch {
	case f.messages.IsArray():
		if f.forAnthropic || r.Header.Get("Anthropic-Version") != "" || strings.HasSuffix(r.URL.Path, "/messages") {
			return messages
		}
		return chat
	case f.input.Exists() || f.prompt.IsObject() || f.instructions.Exists():
		list := f.input.Get("0")
		switch {
		case f.forEmbeddings, list.Exists() && !list.IsObject():
			return embeddings
		case f.forResponses, list.IsObject(), f.prompt.IsObject():
			return responses
		case strings.Contains(strings.ToLower(model), "embed"), strings.HasSuffix(r.URL.Path, "/embeddings"):
			return embeddings
		}
		return responses
	case f.prompt.Exists():
		return completions
	}
	return unknown
}

// fill makes the prompt of the fields.
func (f *fields) fill(req *request) {
	req.choices = 1
	switch req.format {
	case chat, messages:
		req.choices = max(1, f.n)
		req.prompt.add(f.system, 0)
		req.prompt.addMessages(f.messages)
	case completions:
		req.choices = max(1, f.n) * req.prompt.addInput(f.prompt)
	case embeddings:
		req.prompt.addInput(f.input)
	case responses:
		req.prompt.add(f.instructions, 0)
		req.prompt.add(f.prompt, 0)
		if f.input.IsArray() {
			req.prompt.addMessages(f.input)
		} else {
			req.prompt.add(f.input, 0)
		}
	}
	for _, tools := range f.tools {
		if req.format != unknown && (tools.IsArray() || tools.IsObject()) {
			req.prompt.addText(tools.Raw)
		}
	}
}

// wholeNumber reads a number above 0, rounded up and at most most; anything else is 0.
func wholeNumber(v gjson.Result, most int) int {
	if v.Type != gjson.Number || !(v.Num > 0) {
		return 0
	}
	return int(math.Ceil(min(v.Num, float64(most))))
}
