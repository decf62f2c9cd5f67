package main

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
	"github.com/tidwall/gjson"
)

// response is the answer to POST /v1/responses, as OpenAI's SDKs decode it.
type response struct {
	ID                string         `json:"id"`
	Object            string         `json:"object"`
	CreatedAt         int64          `json:"created_at"` // Unix time in seconds
	Status            string         `json:"status"`
	Error             *struct{}      `json:"error"`
	IncompleteDetails gin.H          `json:"incomplete_details"`
	Instructions      *string        `json:"instructions"`
	Model             string         `json:"model"`
	Output            []outputItem   `json:"output"`
	ParallelToolCalls bool           `json:"parallel_tool_calls"`
	ToolChoice        string         `json:"tool_choice"`
	Tools             []struct{}     `json:"tools"`
	Temperature       float64        `json:"temperature"`
	TopP              float64        `json:"top_p"`
	Metadata          gin.H          `json:"metadata"`
	Usage             *responseUsage `json:"usage"` // null until the end of a stream
}

// outputItem is a message of the model.
type outputItem struct {
	ID      string       `json:"id"`
	Type    string       `json:"type"`
	Status  string       `json:"status"`
	Role    string       `json:"role"`
	Content []outputText `json:"content"`
}

type outputText struct {
	Type        string     `json:"type"`
	Text        string     `json:"text"`
	Annotations []struct{} `json:"annotations"`
	Logprobs    []struct{} `json:"logprobs"`
}

func newOutputText(text string) outputText {
	return outputText{Type: "output_text", Text: text, Annotations: []struct{}{}, Logprobs: []struct{}{}}
}

type responseUsage struct {
	InputTokens        int   `json:"input_tokens"`
	InputTokensDetails gin.H `json:"input_tokens_details"`
	OutputTokens       int   `json:"output_tokens"`
	OutputDetails      gin.H `json:"output_tokens_details"`
	TotalTokens        int   `json:"total_tokens"`
}

// respond answers POST /v1/responses with what the model says.
func (b builtIn) respond(c *gin.Context) {
	q, r, problem := b.readResponse(c)
	if problem != nil {
		abort(c, problem)
		return
	}
	answer := response{
		ID: "resp_" + uuid.NewString(), Object: "response", CreatedAt: time.Now().Unix(), Status: "in_progress",
		Model: q.model, Output: []outputItem{}, ParallelToolCalls: true, ToolChoice: "auto", Tools: []struct{}{},
		Temperature: 1, TopP: 1, Metadata: gin.H{},
	}
	item := outputItem{
		ID: "msg_" + uuid.NewString(), Type: "message", Status: "in_progress", Role: "assistant",
		Content: []outputText{},
	}
	switch {
	case q.stream:
		b.streamResponse(c, answer, item, r)
	case b.think(c, r):
		c.JSON(http.StatusOK, answer.with(item.with(r), r))
	}
}

func (b builtIn) readResponse(c *gin.Context) (q question, r reply, problem *apiError) {
	if q, problem = readQuestion(c, []string{"max_output_tokens"}, "input"); problem != nil {
		return q, r, problem
	}
	if input := q.fields["input"]; input.Type == gjson.String {
		q.said = quote(input.Str)
	} else if problem = q.hear("input"); problem != nil {
		return q, r, problem
	}
	r, problem = b.model.reply(c, q)
	return q, r, problem
}

// with is the item when all is said.
func (i outputItem) with(r reply) outputItem {
	i.Status = "completed"
	if r.cut {
		i.Status = "incomplete"
	}
	i.Content = []outputText{newOutputText(r.text)}
	return i
}

// with is the response when all is said.
func (a response) with(item outputItem, r reply) response {
	a.Status, a.Output = item.Status, []outputItem{item}
	if r.cut {
		a.IncompleteDetails = gin.H{"reason": "max_output_tokens"}
	}
	a.Usage = &responseUsage{
		InputTokens: r.prompt, InputTokensDetails: gin.H{"cached_tokens": 0},
		OutputTokens: r.tokens, OutputDetails: gin.H{"reasoning_tokens": 0},
		TotalTokens: r.prompt + r.tokens,
	}
	return a
}

// streamResponse answers with events, whose names are their types.
func (b builtIn) streamResponse(c *gin.Context, answer response, item outputItem, r reply) {
	openStream(c)
	sequence := 0
	send := func(kind string, fields gin.H) {
		fields["type"], fields["sequence_number"] = kind, sequence
		sequence++
		sendEvent(c.Writer, kind, fields)
	}
	inItem := func(more gin.H) gin.H {
		more["item_id"], more["output_index"], more["content_index"] = item.ID, 0, 0
		return more
	}
	send("response.created", gin.H{"response": answer})
	send("response.in_progress", gin.H{"response": answer})
	send("response.output_item.added", gin.H{"output_index": 0, "item": item})
	send("response.content_part.added", inItem(gin.H{"part": newOutputText("")}))
	if !b.say(c, r, func(word string) {
		send("response.output_text.delta", inItem(gin.H{"delta": word, "logprobs": []struct{}{}}))
	}) {
		return
	}
	send("response.output_text.done", inItem(gin.H{"text": r.text, "logprobs": []struct{}{}}))
	send("response.content_part.done", inItem(gin.H{"part": newOutputText(r.text)}))
	item = item.with(r)
	send("response.output_item.done", gin.H{"output_index": 0, "item": item})
	answer = answer.with(item, r)
	send("response."+answer.Status, gin.H{"response": answer})
}
