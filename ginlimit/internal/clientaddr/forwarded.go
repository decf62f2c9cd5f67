package clientaddr

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
)

// Bounds for reading forwarded headers. Anybody may send them, and they are read before any limit.
const (
	maxEntries    = 16 // of a header, from the right; real chains of proxies are shorter
	maxEntry      = 64 // bytes of an entry: an IPv6 address in brackets with zone and port
	maxCandidates = 16 // headers with other names than the usual ones
)

// usualHeaders are the headers that Gin reads by default, and those of the platforms that it knows.
var usualHeaders = [...]string{
	"X-Forwarded-For", "X-Real-Ip",
	http.CanonicalHeaderKey(gin.PlatformCloudflare),
	http.CanonicalHeaderKey(gin.PlatformFlyIO),
	http.CanonicalHeaderKey(gin.PlatformGoogleAppEngine),
}

// forwarded holds the headers of a request that may forward addresses. Only Gin knows which of them it reads.
type forwarded []forwardedHeader

// forwardedHeader is a header that ends in an address.
type forwardedHeader struct {
	name  string
	addrs []netip.Addr // of its last entries, the last one first
	whole bool         // these are all entries
}

// forwardedIn reads the headers. If a request has addresses under very many names, only the usual names
// count.
func forwardedIn(h http.Header) forwarded {
	var found forwarded
	for _, name := range usualHeaders {
		if lines, ok := h[name]; ok {
			found = found.add(name, lines)
		}
	}
	usual := len(found)
	for name, lines := range h {
		if slices.Contains(usualHeaders[:], name) {
			continue
		}
		found = found.add(name, lines)
		if len(found) > usual+maxCandidates {
			return found[:usual]
		}
	}
	return found
}

func (f forwarded) add(name string, lines []string) forwarded {
	addrs, whole := lastAddrs(lines)
	if len(addrs) == 0 {
		return f
	}
	return append(f, forwardedHeader{name, addrs, whole})
}

// lastAddrs reads comma-separated entries from the right, up to one that is not an address. It skips empty
// entries (RFC 9110, section 5.6.1.2).
func lastAddrs(lines []string) (addrs []netip.Addr, whole bool) {
	looked := 0
	for _, line := range slices.Backward(lines) {
		for more := true; more; {
			if looked++; looked > maxEntries {
				return addrs, false
			}
			var entry string
			if entry, line, more = cutLastEntry(line); entry == "" {
				continue
			}
			if !mayBeAddr(entry) {
				return addrs, false
			}
			addr, err := parseAddr(entry)
			if err != nil {
				return addrs, false
			}
			addrs = append(addrs, addr.WithZone(""))
		}
	}
	return addrs, true
}

// cutLastEntry cuts off the text after the last comma of a line. It reads no more of the line than an entry
// may have. A longer entry is returned without its beginning, and is still too long to be an address.
func cutLastEntry(line string) (entry, before string, more bool) {
	start := max(0, len(line)-maxEntry-1)
	comma := start + strings.LastIndexByte(line[start:], ',')
	switch {
	case comma >= start:
		return strings.TrimSpace(line[comma+1:]), line[:comma], true
	case start > 0:
		return line[start:], "", false
	}
	return strings.TrimSpace(line), "", false
}

// mayBeAddr is a quick check, so that most other headers are not parsed.
func mayBeAddr(entry string) bool {
	digits := strings.TrimLeft(entry, `"[`)
	return len(entry) <= maxEntry && strings.ContainsAny(entry, ".:") &&
		digits != "" && strings.IndexByte("0123456789abcdefABCDEF:", digits[0]) >= 0
}

// chains are the headers in a form that Gin can read: plain addresses, comma-separated.
func (f forwarded) chains() http.Header {
	h := make(http.Header, len(f))
	for _, header := range f {
		var chain []byte
		if !header.whole {
			chain = append(chain, '-') // so that Gin does not take the first entry kept for the client
		}
		for _, addr := range slices.Backward(header.addrs) {
			if len(chain) > 0 {
				chain = append(chain, ',')
			}
			chain = addr.AppendTo(chain)
		}
		h[header.name] = []string{string(chain)}
	}
	return h
}

// lastEntries are the headers with only their last entry.
func (f forwarded) lastEntries() http.Header {
	h := make(http.Header, len(f))
	for _, header := range f {
		h[header.name] = []string{header.addrs[0].String()}
	}
	return h
}
