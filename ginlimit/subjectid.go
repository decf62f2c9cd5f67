package ginlimit

import (
	"strings"
	"unsafe"

	"github.com/gin-gonic/gin"
)

// addressPrefix begins the ids of callers that are known by their address only.
const addressPrefix = "ip/"

// addressIDKey is where ByClientIP keeps the id that it made, in the gin.Context.
type addressIDKey struct{}

// markAddressID returns id as the string that subjectID will recognize. Calls for one request and one id
// return the same string, so that a resolver may call it several times.
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

// subjectID is the id under which a subject is counted. An id of ByClientIP stays as it is. Any other id that
// looks like one is escaped, and so is an id that looks escaped: no two ids become one.
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

// sameString reports whether a and b share their bytes in memory. Equality is not enough: a resolver that has
// called ByClientIP may still return a user, whose name may equal that address.
func sameString(a, b string) bool {
	return len(a) == len(b) && unsafe.StringData(a) == unsafe.StringData(b)
}
