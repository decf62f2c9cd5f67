package ginlimit

import (
	"strings"
	"unsafe"

	"github.com/gin-gonic/gin"
)

// addressPrefix begins the ids of callers who are known by their address alone.
const addressPrefix = "ip/"

// addressIDKey is where ByClientIP keeps the id that it made, in the gin.Context.
type addressIDKey struct{}

// markAddressID returns id as the string that subjectID will know again. Calls for one request and one id
// return the same string, so that a resolver may ask several times.
func markAddressID(c *gin.Context, id string) string {
	if made, ok := addressIDOf(c); ok && made == id {
		return made
	}
	c.Set(addressIDKey{}, id)
	return id
}

func addressIDOf(c *gin.Context) (string, bool) {
	made, _ := c.Get(addressIDKey{})
	id, ok := made.(string)
	return id, ok
}

// subjectID is the id under which a subject is counted. An id of ByClientIP stays as it is. Any other one
// that looks like it is escaped, and so is one that looks escaped: no two ids become one.
func subjectID(c *gin.Context, s Subject) string {
	id := s.UserID
	if len(id) < len(addressPrefix) || !strings.HasPrefix(id, "ip") {
		return id
	}
	if made, ok := addressIDOf(c); ok && sameString(made, id) {
		return id
	}
	switch id[len("ip")] {
	case '/':
		return "ip%2F" + id[len(addressPrefix):]
	case '%':
		return "ip%25" + id[len(addressPrefix):]
	}
	return id
}

// sameString reports whether b is a itself or a copy of its header, and not only equal to it: a resolver that
// has asked ByClientIP may still return a user, who may have the name of that very address.
func sameString(a, b string) bool {
	return len(a) == len(b) && unsafe.StringData(a) == unsafe.StringData(b)
}
