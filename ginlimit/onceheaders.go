package ginlimit

import (
	"net/http"

	"github.com/gin-gonic/gin"
)

// onceHeaders sends each header of the limiters once. A handler such as a reverse proxy may add its
// provider's headers of the same names. Only the first value is kept: the limiters', if they have set one.
type onceHeaders struct {
	gin.ResponseWriter
	r *requestOn
}

// sendOnce wraps c.Writer. HandleContext resets c.Writer, so it may be called again.
func (r *requestOn) sendOnce() {
	if _, there := r.c.Writer.(*onceHeaders); there {
		return
	}
	w := &r.writer
	if w.ResponseWriter != nil { // in use
		w = &onceHeaders{}
	}
	*w = onceHeaders{r.c.Writer, r}
	r.c.Writer = w
}

// Unwrap is for http.ResponseController.
func (w *onceHeaders) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *onceHeaders) WriteHeader(status int) {
	w.keepFirst()
	w.ResponseWriter.WriteHeader(status)
}

func (w *onceHeaders) WriteHeaderNow() {
	w.keepFirst()
	w.ResponseWriter.WriteHeaderNow()
}

func (w *onceHeaders) Flush() {
	w.keepFirst()
	w.ResponseWriter.Flush()
}

func (w *onceHeaders) Write(p []byte) (int, error) {
	w.keepFirst()
	return w.ResponseWriter.Write(p)
}

func (w *onceHeaders) WriteString(s string) (int, error) {
	w.keepFirst()
	return w.ResponseWriter.WriteString(s)
}

func (w *onceHeaders) keepFirst() {
	if w.r.dialects == nil || w.Written() {
		return
	}
	for _, d := range w.r.dialects.all {
		d.KeepFirst(w.Header())
	}
}
