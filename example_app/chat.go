package main

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"
)

// builtIn answers with the built-in model.
type builtIn struct{ model model }

// backend is all that the built-in model answers.
func (b builtIn) backend() backend {
	all := backend{asking: map[string]gin.HandlerFunc{"/chat/completions": b.chat}}
	all.models.list, all.models.show = b.listModels, b.showModel
	return all
}

// chat answers POST /v1/chat/completions with what the model says.
func (b builtIn) chat(c *gin.Context) {
	req, problem := readChatRequest(c.Request.Body)
	if problem != nil {
		abort(c, problem)
		return
	}
	reply := b.model.reply(req.Messages, req.maxTokens())
	if req.Stream {
		stream(c, b.model, req, reply)
	} else {
		complete(c, b.model, req, reply)
	}
}

// complete answers once the model has said everything.
func complete(c *gin.Context, m model, req chatRequest, r reply) {
	if m.speak(c.Request.Context(), r.text, func(string) {}) != nil {
		return // the client has left
	}
	answer := newCompletion("chat.completion", req.Model)
	answer.Choices = []choice{{Message: &message{"assistant", content(r.text)}, FinishReason: &r.finishReason}}
	answer.Usage = &r.usage
	c.JSON(http.StatusOK, answer)
}

// stream answers with server-sent events, one for each word. The limit headers are ahead of them:
// the limiter has set them by now.
func stream(c *gin.Context, m model, req chatRequest, r reply) {
	c.Header("Content-Type", "text/event-stream")
	c.Header("Cache-Control", "no-cache")
	chunk := newCompletion("chat.completion.chunk", req.Model)
	send := func(d delta, finishReason *string) {
		chunk.Choices = []choice{{Delta: &d, FinishReason: finishReason}}
		sendEvent(c.Writer, chunk)
	}

	send(delta{Role: "assistant"}, nil)
	if m.speak(c.Request.Context(), r.text, func(word string) { send(delta{Content: word}, nil) }) != nil {
		return // the client has left
	}
	send(delta{}, &r.finishReason)
	if req.StreamOptions.IncludeUsage {
		chunk.Choices, chunk.Usage = []choice{}, &r.usage
		sendEvent(c.Writer, chunk)
	}
	fmt.Fprint(c.Writer, "data: [DONE]\n\n")
}

// sendEvent writes one event and flushes it. An error means that the client has left, which its
// context tells too.
func sendEvent(w gin.ResponseWriter, data completion) {
	text, _ := json.Marshal(data) // plain data always has a JSON form
	fmt.Fprintf(w, "data: %s\n\n", text)
	w.Flush()
}
