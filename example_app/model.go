package main

import (
	"context"
	"slices"
	"strings"
	"time"
)

const (
	wordTime = 5 * time.Millisecond // how long the model takes for a word
	maxQuote = 1 << 10              // how much of a message it repeats, in bytes
)

// model is the built-in model. It repeats what the user said last, so that the same messages always
// get the same reply, and takes some milliseconds for each word of it.
type model struct{ tokens tokenizer }

// reply is all that a model says to a conversation.
type reply struct {
	text         string
	finishReason string
	usage        usage
}

// reply decides what to say in at most maxTokens tokens; 0 is no limit.
func (m model) reply(messages []message, maxTokens int) reply {
	r := reply{text: "Hello! What would you like to talk about?", finishReason: "stop"}
	if said := strings.Fields(clip(lastOf("user", messages), maxQuote)); len(said) > 0 {
		r.text = "You said: " + strings.Join(said, " ")
	}
	if maxTokens > 0 {
		if cut, shorter := m.tokens.truncate(r.text, maxTokens); shorter {
			r.text, r.finishReason = cut, "length"
		}
	}
	prompt := 3 // OpenAI's chat format opens the reply with three tokens
	texts := m.tokens.promptCounter()
	for _, msg := range messages {
		prompt += 3 + texts.count(msg.Role) + texts.count(string(msg.Content)) // and frames each message with three
	}
	r.usage = newUsage(prompt, m.tokens.count(r.text))
	return r
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

// lastOf returns what was last said in a role.
func lastOf(role string, messages []message) string {
	for _, msg := range slices.Backward(messages) {
		if msg.Role == role {
			return string(msg.Content)
		}
	}
	return ""
}
