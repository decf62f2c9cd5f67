package main

import (
	"encoding/json"
	"fmt"

	"github.com/gin-gonic/gin"
)

// builtIn answers with the built-in model.
type builtIn struct{ model model }

// backend is all that the built-in model answers.
func (b builtIn) backend() backend {
	all := backend{asking: map[string]gin.HandlerFunc{
		"/chat/completions": b.chat,
		"/completions":      b.complete,
		"/embeddings":       b.embed,
		"/messages":         b.message,
		"/responses":        b.respond,
	}}
	all.models.list, all.models.show = b.listModels, b.showModel
	return all
}

// think takes the time that the model needs to say it all, and reports whether the client is still there.
func (b builtIn) think(c *gin.Context, r reply) bool {
	return b.model.speak(c.Request.Context(), r.text, func(string) {}) == nil
}

// say says a reply word by word, and reports whether the client is still there.
func (b builtIn) say(c *gin.Context, r reply, say func(word string)) bool {
	return b.model.speak(c.Request.Context(), r.text, say) == nil
}

// openStream announces server-sent events. The limit headers are ahead of them: the limiter has set them by
// now.
func openStream(c *gin.Context) {
	c.Header("Content-Type", "text/event-stream")
	c.Header("Cache-Control", "no-cache")
}

// sendEvent writes one event, which may have a name, and flushes it. An error means that the client has left,
// which its context tells too.
func sendEvent(w gin.ResponseWriter, name string, data any) {
	text, _ := json.Marshal(data) // plain data always has a JSON form
	if name != "" {
		fmt.Fprintf(w, "event: %s\n", name)
	}
	fmt.Fprintf(w, "data: %s\n\n", text)
	w.Flush()
}
