package main

import (
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
)

// anthropicMessage is the answer to POST /v1/messages, as Anthropic's SDKs decode it.
type anthropicMessage struct {
	ID           string           `json:"id"`
	Type         string           `json:"type"`
	Role         string           `json:"role"`
	Model        string           `json:"model"`
	Content      []anthropicBlock `json:"content"`
	StopReason   *string          `json:"stop_reason"` // null until the end of a stream
	StopSequence *string          `json:"stop_sequence"`
	Usage        anthropicUsage   `json:"usage"`
}

type anthropicBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type anthropicUsage struct {
	InputTokens              int `json:"input_tokens"`
	CacheCreationInputTokens int `json:"cache_creation_input_tokens"`
	CacheReadInputTokens     int `json:"cache_read_input_tokens"`
	OutputTokens             int `json:"output_tokens"`
}

// message answers POST /v1/messages with what the model says.
func (b builtIn) message(c *gin.Context) {
	q, r, problem := b.readMessage(c)
	if problem != nil {
		abort(c, problem)
		return
	}
	answer := anthropicMessage{
		ID: "msg_" + uuid.NewString(), Type: "message", Role: "assistant", Model: q.model,
		Content: []anthropicBlock{}, Usage: anthropicUsage{InputTokens: r.prompt},
	}
	stopReason := "end_turn"
	if r.cut {
		stopReason = "max_tokens"
	}
	switch {
	case q.stream:
		b.streamMessage(c, answer, r, stopReason)
	case b.think(c, r):
		answer.Content = append(answer.Content, anthropicBlock{"text", r.text})
		answer.StopReason = &stopReason
		answer.Usage.OutputTokens = r.tokens
		c.JSON(http.StatusOK, answer)
	}
}

func (b builtIn) readMessage(c *gin.Context) (q question, r reply, problem *apiError) {
	if q, problem = readQuestion(c, []string{"max_tokens"}, "messages"); problem != nil {
		return q, r, problem
	}
	if q.maxTokens == 0 {
		return q, r, invalid("max_tokens", "The request says no max_tokens.")
	}
	if problem = q.hear("messages"); problem != nil {
		return q, r, problem
	}
	r, problem = b.model.reply(c, q)
	return q, r, problem
}

// streamMessage answers with events, whose names are their types.
func (b builtIn) streamMessage(c *gin.Context, answer anthropicMessage, r reply, stopReason string) {
	openStream(c)
	send := func(kind string, fields gin.H) {
		fields["type"] = kind
		sendEvent(c.Writer, kind, fields)
	}
	answer.Usage.OutputTokens = 0
	send("message_start", gin.H{"message": answer})
	send("content_block_start", gin.H{"index": 0, "content_block": anthropicBlock{Type: "text"}})
	send("ping", gin.H{})
	if !b.say(c, r, func(word string) {
		send("content_block_delta", gin.H{"index": 0, "delta": anthropicBlock{"text_delta", word}})
	}) {
		return
	}
	send("content_block_stop", gin.H{"index": 0})
	send("message_delta", gin.H{
		"delta": gin.H{"stop_reason": stopReason, "stop_sequence": nil},
		"usage": gin.H{"output_tokens": r.tokens},
	})
	send("message_stop", gin.H{})
}
