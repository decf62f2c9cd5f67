package main

import (
	"time"

	"github.com/google/uuid"
)

// message is one of a chat.
type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// completion is a chat completion, a legacy one or, in a stream, a chunk of one.
type completion struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"` // Unix time in seconds
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage,omitempty"`
}

func newCompletion(prefix, object, model string) completion {
	return completion{
		ID: prefix + uuid.NewString(), Object: object, Created: time.Now().Unix(), Model: model,
	}
}

// choice has a message in a chat completion, a delta in a chunk of one, a text in a legacy one.
type choice struct {
	Index        int      `json:"index"`
	Message      *message `json:"message,omitempty"`
	Delta        *delta   `json:"delta,omitempty"`
	Text         *string  `json:"text,omitempty"`
	FinishReason *string  `json:"finish_reason"` // null until the last chunk
}

// delta is what a chunk adds to the message.
type delta struct {
	Role    string `json:"role,omitempty"`
	Content string `json:"content,omitempty"`
}

// usage is what a completion costs, in tokens.
type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

func newUsage(prompt, completion int) *usage { return &usage{prompt, completion, prompt + completion} }

// finishReason is why a completion ends.
func finishReason(r reply) *string {
	if r.cut {
		return new("length")
	}
	return new("stop")
}

// wantsUsage reports whether a stream shall end with the usage.
func (q question) wantsUsage() (bool, *apiError) {
	options, ok := q.fields["stream_options"]
	if !ok {
		return false, nil
	}
	include := options.Get("include_usage")
	if !options.IsObject() || include.Exists() && !include.IsBool() {
		return false, wrongType("stream_options")
	}
	return include.Bool(), nil
}
