package main

import (
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"
)

// replyFrame is what OpenAI's chat format opens the reply with, in tokens.
const replyFrame = 3

// chat answers POST /v1/chat/completions with what the model says.
func (b builtIn) chat(c *gin.Context) {
	q, withUsage, r, problem := b.readChat(c)
	switch {
	case problem != nil:
		abort(c, problem)
	case q.stream:
		b.streamChat(c, q, r, withUsage)
	case b.think(c, r):
		answer := newCompletion("chatcmpl-", "chat.completion", q.model)
		answer.Choices = []choice{{Message: &message{"assistant", r.text}, FinishReason: finishReason(r)}}
		answer.Usage = newUsage(r.prompt, r.tokens)
		c.JSON(http.StatusOK, answer)
	}
}

func (b builtIn) readChat(c *gin.Context) (q question, withUsage bool, r reply, problem *apiError) {
	limits := []string{"max_completion_tokens", "max_tokens"} // the second is the older name
	if q, problem = readQuestion(c, limits, "messages", "stream_options"); problem != nil {
		return q, false, r, problem
	}
	if problem = q.hear("messages"); problem != nil {
		return q, false, r, problem
	}
	if withUsage, problem = q.wantsUsage(); problem != nil {
		return q, false, r, problem
	}
	r, problem = b.model.reply(c, q)
	r.prompt += replyFrame
	return q, withUsage, r, problem
}

// streamChat answers with server-sent events, one for each word.
func (b builtIn) streamChat(c *gin.Context, q question, r reply, withUsage bool) {
	openStream(c)
	chunk := newCompletion("chatcmpl-", "chat.completion.chunk", q.model)
	send := func(d delta, finishReason *string) {
		chunk.Choices = []choice{{Delta: &d, FinishReason: finishReason}}
		sendEvent(c.Writer, "", chunk)
	}
	send(delta{Role: "assistant"}, nil)
	if !b.say(c, r, func(word string) { send(delta{Content: word}, nil) }) {
		return
	}
	send(delta{}, finishReason(r))
	if withUsage {
		chunk.Choices, chunk.Usage = []choice{}, newUsage(r.prompt, r.tokens)
		sendEvent(c.Writer, "", chunk)
	}
	fmt.Fprint(c.Writer, "data: [DONE]\n\n")
}
