package admin

import (
	"log/slog"
	"net/http"

	"github.com/gin-gonic/gin"
)

// problem is the error object of the limiter's own answers. Its text never holds an inner error.
type problem struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    string  `json:"code"`
}

// invalid answers 400 about a parameter, or about the body if param is empty.
func invalid(c *gin.Context, param, message string) {
	p := problem{Message: message, Type: "invalid_request_error", Code: "invalid_request"}
	if param != "" {
		p.Param = &param
	}
	c.AbortWithStatusJSON(http.StatusBadRequest, gin.H{"error": p})
}

// unavailable answers 503 after an error of the store.
func unavailable(c *gin.Context, message string, err error) {
	if c.Request.Context().Err() == nil { // otherwise the client has left, and nothing failed
		slog.ErrorContext(c.Request.Context(), message, "error", err)
	}
	c.Header("Retry-After", "1")
	c.AbortWithStatusJSON(http.StatusServiceUnavailable, gin.H{"error": problem{
		Message: "The rate limiter is unavailable. Try again shortly.",
		Type:    "api_error", Code: "rate_limiter_unavailable",
	}})
}
