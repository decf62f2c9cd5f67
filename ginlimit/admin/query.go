package admin

import (
	"net/url"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
)

// maxValues bounds how often a parameter may be given.
const maxValues = 16

// query returns the parameters of a request, or answers 400: without that, a misspelt name would mean the
// default. The user is required, and only windows may be repeated.
func (r *routes) query(c *gin.Context, known ...string) (url.Values, bool) {
	q, err := url.ParseQuery(c.Request.URL.RawQuery)
	if err != nil {
		invalid(c, "", "The query cannot be read.")
		return nil, false
	}
	for name, values := range q {
		switch {
		case !slices.Contains(known, name):
			invalid(c, "", "A parameter is not known: want "+strings.Join(known, " and ")+".")
			return nil, false
		case len(values) > 1 && name != "window" || len(values) > maxValues:
			invalid(c, name, "The parameter is given too often.")
			return nil, false
		}
	}
	if id := q.Get("user"); id == "" || len(id) > maxUserID {
		invalid(c, "user", "Name the user by the id that the resolver returns, of at most 4096 bytes.")
		return nil, false
	}
	return q, true
}
