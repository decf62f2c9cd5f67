package main

import (
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/tidwall/gjson"
)

// complete answers POST /v1/completions, OpenAI's legacy form, to one prompt of text.
func (b builtIn) complete(c *gin.Context) {
	q, withUsage, r, problem := b.readCompletion(c)
	if problem != nil {
		abort(c, problem)
		return
	}
	answer := newCompletion("cmpl-", "text_completion", q.model)
	if !q.stream {
		if b.think(c, r) {
			answer.Choices = []choice{{Text: &r.text, FinishReason: finishReason(r)}}
			answer.Usage = newUsage(r.prompt, r.tokens)
			c.JSON(http.StatusOK, answer)
		}
		return
	}
	openStream(c)
	send := func(text string, finishReason *string) {
		answer.Choices = []choice{{Text: &text, FinishReason: finishReason}}
		sendEvent(c.Writer, "", answer)
	}
	if !b.say(c, r, func(word string) { send(word, nil) }) {
		return
	}
	send("", finishReason(r))
	if withUsage {
		answer.Choices, answer.Usage = []choice{}, newUsage(r.prompt, r.tokens)
		sendEvent(c.Writer, "", answer)
	}
	fmt.Fprint(c.Writer, "data: [DONE]\n\n")
}

func (b builtIn) readCompletion(c *gin.Context) (q question, withUsage bool, r reply, problem *apiError) {
	if q, problem = readQuestion(c, []string{"max_tokens"}, "prompt", "stream_options"); problem != nil {
		return q, false, r, problem
	}
	prompt, ok := q.fields["prompt"]
	if list := prompt.Get("#"); prompt.IsArray() && list.Int() == 1 {
		prompt = prompt.Get("0")
	}
	if !ok || prompt.Type != gjson.String {
		return q, false, r, invalid("prompt", "This service takes one prompt, a string.")
	}
	q.said = quote(prompt.Str)
	if withUsage, problem = q.wantsUsage(); problem != nil {
		return q, false, r, problem
	}
	r, problem = b.model.reply(c, q)
	return q, withUsage, r, problem
}
