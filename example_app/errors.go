package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/gin-gonic/gin"
)

// apiError is the error object that OpenAI SDKs decode. Its texts are fixed: what failed inside is
// for the log.
type apiError struct {
	status  int
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

var (
	errNotFound = &apiError{http.StatusNotFound, "There is nothing at this URL.",
		"invalid_request_error", nil, new("unknown_url")}
	errMethodNotAllowed = &apiError{http.StatusMethodNotAllowed, "This URL does not take that method.",
		"invalid_request_error", nil, new("method_not_allowed")}
	errNotJSON = &apiError{http.StatusBadRequest, "The request body is not a JSON object.",
		"invalid_request_error", nil, new("invalid_json")}
	errInternal = &apiError{http.StatusInternalServerError,
		"The server had an error while it processed the request.",
		"api_error", nil, new("internal_error")}
)

// invalid is the error about a parameter of the request.
func invalid(param, message string) *apiError {
	return &apiError{http.StatusBadRequest, message, "invalid_request_error", &param, nil}
}

// bodyTooLarge is the error about a request body of more than limit bytes.
func bodyTooLarge(limit int64) *apiError {
	return &apiError{http.StatusRequestEntityTooLarge,
		fmt.Sprintf("The request body is larger than %d bytes.", limit),
		"invalid_request_error", nil, new("request_too_large")}
}

// abort answers with e and ends the chain.
func abort(c *gin.Context, e *apiError) {
	e.writeTo(c.Writer)
	c.Abort()
}

func (e *apiError) writeTo(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(e.status)
	_ = json.NewEncoder(w).Encode(map[string]*apiError{"error": e}) // fails only when the client has left
}

// recovery answers a panic with 500. When the answer has begun it cuts the connection instead, so
// that nobody takes half an answer for a whole one; gin.Recovery would end it in good order.
func recovery(c *gin.Context) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		if cause != http.ErrAbortHandler { // the forwarder's way to cut the connection
			slog.Error("panic in a handler", "cause", cause, "stack", string(debug.Stack()))
		}
		if cause == http.ErrAbortHandler || c.Writer.Written() {
			panic(http.ErrAbortHandler)
		}
		abort(c, errInternal)
	}()
	c.Next()
}
