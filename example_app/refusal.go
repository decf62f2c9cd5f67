package main

import (
	"fmt"
	"net/http"
)

var (
	errUpstreamUnreachable = &apiError{http.StatusBadGateway,
		"The model provider cannot be reached. Try again shortly.",
		"api_error", nil, new("upstream_unreachable")}
	errUpstreamRefused = &apiError{http.StatusBadGateway,
		"The model provider does not accept requests of this service.",
		"api_error", nil, new("upstream_refused")}
)

// refusal is a provider's answer that is not for the caller. It concerns this service: its credentials, its
// bill or the URL that it was told.
type refusal struct{ status int }

func (r refusal) Error() string { return fmt.Sprintf("the provider answers with status %d", r.status) }

// refusalIn returns the refusal in a provider's answer, or nil. A redirect is one. To follow it would show
// the owner's key to another place.
func refusalIn(res *http.Response) error {
	switch status := res.StatusCode; {
	case status == http.StatusNotModified && isConditional(res.Request):
		return nil
	case status < 200 || status > 599, // net/http refuses to write some of those
		status >= 300 && status < 400,
		status == http.StatusUnauthorized,
		status == http.StatusPaymentRequired,
		status == http.StatusForbidden,
		status == http.StatusProxyAuthRequired,
		status == http.StatusNetworkAuthenticationRequired:
		return refusal{status}
	}
	return nil
}

// isConditional reports whether a request asks if a copy is still good.
func isConditional(r *http.Request) bool {
	return r.Method == http.MethodGet &&
		(r.Header.Get("If-None-Match") != "" || r.Header.Get("If-Modified-Since") != "")
}
