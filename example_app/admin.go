package main

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/admin"
)

var (
	errNotOperator = &apiError{http.StatusUnauthorized, "The admin routes need ADMIN_TOKEN as bearer token.",
		"authentication_error", nil, new("unauthenticated")}
	errElsewhere = &apiError{http.StatusForbidden,
		"Without ADMIN_TOKEN the admin routes answer this machine only.",
		"permission_error", nil, new("forbidden")}
)

// mountAdmin mounts the admin routes where ADMIN_TOKEN is set, and where the demo keys are in use, which is
// on loopback only. There they need no token.
func mountAdmin(router gin.IRouter, cfg config, limiter *ginlimit.Limiter) {
	auth := operator(cfg.adminToken)
	switch {
	case cfg.adminToken != "":
	case cfg.demo:
		auth = thisMachine()
	default:
		return
	}
	admin.Routes(router.Group("/admin", auth), limiter, admin.WithLiveTiers(cfg.tiers))
}

// operator lets the owner of the token pass. How long it takes says nothing about the token.
func operator(token string) gin.HandlerFunc {
	want := sha256.Sum256([]byte(token))
	return func(c *gin.Context) {
		scheme, given, _ := strings.Cut(c.GetHeader("Authorization"), " ")
		got := sha256.Sum256([]byte(strings.TrimSpace(given)))
		if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(want[:], got[:]) != 1 {
			c.Header("WWW-Authenticate", "Bearer")
			abort(c, errNotOperator)
		}
	}
}

// thisMachine refuses what a web page from elsewhere may have a browser on this machine send: by another
// origin, or by a name of its own for this address.
func thisMachine() gin.HandlerFunc {
	crossOrigin := http.NewCrossOriginProtection()
	return func(c *gin.Context) {
		host := c.Request.Host
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), "80")
		}
		if loopback, err := isLoopback(host); err != nil || !loopback || crossOrigin.Check(c.Request) != nil {
			abort(c, errElsewhere)
		}
	}
}
