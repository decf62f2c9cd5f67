package main

import (
	"context"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
)

// wordTime is how long the model takes for a word.
const wordTime = 5 * time.Millisecond

// model is the built-in model. It repeats what the user said last, so that the same messages always
// get the same reply, and takes some milliseconds for each word of it.
type model struct{ tokens tokenizer }

// reply is all that a model says to a question.
type reply struct {
	text   string
	cut    bool // by the limit of tokens
	prompt int  // tokens
	tokens int  // of the text
}

// reply decides what to say.
func (m model) reply(c *gin.Context, q question) (r reply, problem *apiError) {
	r.text = "Hello! What would you like to talk about?"
	if said := strings.Fields(q.said); len(said) > 0 {
		r.text = "You said: " + strings.Join(said, " ")
	}
	if q.maxTokens > 0 {
		r.text, r.cut = m.tokens.truncate(r.text, q.maxTokens)
	}
	r.tokens = m.tokens.count(r.text)
	r.prompt, problem = m.tokens.prompt(c)
	return r, problem
}

// speak says text word by word, at the model's pace. It fails when ctx ends before the text does.
func (m model) speak(ctx context.Context, text string, say func(word string)) error {
	for word := range strings.SplitAfterSeq(text, " ") {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wordTime):
			say(word)
		}
	}
	return nil
}
