package main

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/gin-gonic/gin"
)

var errModelNotFound = &apiError{http.StatusNotFound, "There is no such model.",
	"invalid_request_error", new("model"), new("model_not_found")}

// modelObject is a model in OpenAI's form.
type modelObject struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func newModelObject(id string) modelObject {
	return modelObject{ID: id, Object: "model", OwnedBy: "example_app"}
}

// listModels answers GET /v1/models.
func (builtIn) listModels(c *gin.Context) {
	c.JSON(http.StatusOK, gin.H{"object": "list", "data": []modelObject{newModelObject("built-in")}})
}

// showModel answers GET /v1/models/{id}. The built-in model answers to any name, here as in a chat.
func (builtIn) showModel(c *gin.Context) {
	c.JSON(http.StatusOK, newModelObject(modelID(c)))
}

// modelID is the id in the path, decoded. It may hold slashes.
func modelID(c *gin.Context) string { return strings.TrimPrefix(c.Param("id"), "/") }

// needModelID answers 404 where the path ends before the id.
func needModelID(c *gin.Context) {
	if modelID(c) == "" {
		abort(c, errNotFound)
	}
}

var (
	plainPath  = regexp.MustCompile(`^[\w.:@+~=,-]+(/[\w.:@+~=,-]+)*$`)
	dotSegment = regexp.MustCompile(`(^|/)\.+(/|$)`)
)

// staysBelow reports whether a path is one that no server could read as a way out of the folder it is in: no
// dot segments, no empty ones, and nothing that is or begins an escape somewhere.
func staysBelow(path string) bool {
	return plainPath.MatchString(path) && !dotSegment.MatchString(path)
}

// modelPath is where a provider has the model.
func modelPath(c *gin.Context) (url.URL, bool) {
	id := modelID(c)
	if !staysBelow(id) {
		return url.URL{}, false
	}
	path := url.URL{Path: "/models/" + id}
	if strings.Count(c.Request.URL.EscapedPath(), "/") < strings.Count(c.Request.URL.Path, "/") {
		path.RawPath = "/models/" + strings.ReplaceAll(id, "/", "%2F") // as SDKs write org/model
	}
	return path, true
}
