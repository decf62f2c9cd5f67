package main

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"
)

// chatRequest is the part of OpenAI's chat-completion request that the built-in model heeds.
type chatRequest struct {
	Model               string    `json:"model"`
	Messages            []message `json:"messages"`
	N                   *int      `json:"n"`
	MaxTokens           *int      `json:"max_tokens"` // the older name
	MaxCompletionTokens *int      `json:"max_completion_tokens"`
	Stream              bool      `json:"stream"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

type message struct {
	Role    string  `json:"role"`
	Content content `json:"content"`
}

// content is the text of a message: a JSON string, null, or a list of parts, of which only the text
// parts count.
type content string

func (c *content) UnmarshalJSON(data []byte) error {
	if data[0] != '[' {
		return json.Unmarshal(data, (*string)(c))
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	var texts []string
	for _, part := range parts {
		texts = append(texts, part.Text)
	}
	*c = content(strings.Join(texts, "\n"))
	return nil
}

// completion is a chat completion or, in a stream, a chunk of one.
type completion struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"` // Unix time in seconds
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage,omitempty"`
}

func newCompletion(object, model string) completion {
	return completion{
		ID: "chatcmpl-" + uuid.NewString(), Object: object, Created: time.Now().Unix(), Model: model,
	}
}

// choice has a message in a completion, a delta in a chunk.
type choice struct {
	Index        int      `json:"index"`
	Message      *message `json:"message,omitempty"`
	Delta        *delta   `json:"delta,omitempty"`
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

func newUsage(prompt, completion int) usage { return usage{prompt, completion, prompt + completion} }

// readChatRequest checks everything that the built-in model relies on.
func readChatRequest(r io.Reader) (chatRequest, *apiError) {
	var req chatRequest
	body, err := io.ReadAll(r)
	if err == nil {
		err = json.Unmarshal(body, &req) // unlike a Decoder, it refuses what follows the object
	}
	if err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
			return req, invalid(wrong.Field, "A field of the request has the wrong type.")
		}
		return req, errNotJSON
	}
	switch {
	case req.Model == "":
		return req, invalid("model", "The request names no model.")
	case len(req.Messages) == 0:
		return req, invalid("messages", "The request has no messages.")
	case req.N != nil && *req.N != 1:
		return req, invalid("n", "This service gives one choice: n must be 1.")
	case req.MaxTokens != nil && *req.MaxTokens < 1:
		return req, invalid("max_tokens", "max_tokens must be at least 1.")
	case req.MaxCompletionTokens != nil && *req.MaxCompletionTokens < 1:
		return req, invalid("max_completion_tokens", "max_completion_tokens must be at least 1.")
	}
	return req, nil
}

// maxTokens is how long the reply may be; 0 is no limit.
func (r chatRequest) maxTokens() int {
	switch {
	case r.MaxCompletionTokens != nil:
		return *r.MaxCompletionTokens
	case r.MaxTokens != nil:
		return *r.MaxTokens
	}
	return 0
}
