package main

import (
	"crypto/sha256"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
)

// Where authenticate leaves the caller in Gin's context, and the limiter finds it.
const (
	userKey = "user_id"
	tierKey = "tier"
)

var (
	errNoAPIKey = &apiError{http.StatusUnauthorized,
		"No API key was given. Send it as Authorization: Bearer KEY.",
		"authentication_error", nil, new("unauthenticated")}
	errWrongAPIKey = &apiError{http.StatusUnauthorized, "The API key is not valid.",
		"authentication_error", nil, new("invalid_api_key")}
)

// authenticate lets owners of an API key pass and answers 401 to everybody else. The key is a bearer token,
// or it stands in X-Api-Key, where Anthropic's SDKs put it.
func (cs callers) authenticate(c *gin.Context) {
	scheme, token, _ := strings.Cut(c.GetHeader("Authorization"), " ")
	token = strings.TrimSpace(token)
	if key := c.GetHeader("X-Api-Key"); key != "" && scheme == "" {
		scheme, token = "Bearer", strings.TrimSpace(key)
	}
	owner, known := cs[sha256.Sum256([]byte(token))]
	switch {
	case token == "" || !strings.EqualFold(scheme, "Bearer"):
		c.Header("WWW-Authenticate", "Bearer")
		abort(c, errNoAPIKey)
	case !known:
		c.Header("WWW-Authenticate", `Bearer error="invalid_token"`)
		abort(c, errWrongAPIKey)
	default:
		c.Set(userKey, owner.user)
		c.Set(tierKey, owner.tier)
	}
}
