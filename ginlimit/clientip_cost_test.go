package ginlimit

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/tiers"
)

// hostile are headers of 48 KB that are meant to cost time before any limit.
func hostile() map[string]http.Header {
	const size = 48 << 10
	long := func(entry string) string { return strings.Repeat(entry, size/len(entry)) + "203.0.113.7" }
	lines := func(line string) http.Header {
		h := http.Header{"X-Forwarded-For": nil}
		for range size / (len("X-Forwarded-For: \r\n") + len(line)) {
			h.Add("X-Forwarded-For", line)
		}
		h.Add("X-Forwarded-For", "203.0.113.7")
		return h
	}
	many := http.Header{}
	for i := range size / len("X-0000: 198.51.100.99\r\n") {
		many.Set(fmt.Sprintf("X-%04d", i), forged)
	}
	return map[string]http.Header{
		"short entries":    headersOf("X-Forwarded-For: " + long("1.2.3.4,")),
		"trusted entries":  headersOf("X-Forwarded-For: " + long("10.2.3.4, ")),
		"empty entries":    headersOf("X-Forwarded-For: " + long(",")),
		"blanks":           headersOf("X-Forwarded-For: 9.9.9.9" + strings.Repeat(" ", size) + ", 203.0.113.7"),
		"no comma":         headersOf("X-Forwarded-For: " + long("1")),
		"one entry a line": lines("1.2.3.4"),
		"empty lines":      lines(""),
		"two headers": headersOf("X-Forwarded-For: " + long("1.2.3.4,")[size/2:] +
			"\nX-Real-IP: " + long("10.2.3.4,")[size/2:]),
		"many names of headers": many,
	}
}

// Case R35: a forged header costs little, however long it is.
func TestByClientIPCostOfForgedHeaders(t *testing.T) {
	for _, setUp := range []func(*gin.Engine){func(*gin.Engine) {}, trust("10.0.0.0/8")} {
		for name, header := range hostile() {
			t.Run(name, func(t *testing.T) {
				captureLogs(t)
				c, engine := gin.CreateTestContext(httptest.NewRecorder())
				setUp(engine)
				c.Request = httptest.NewRequest(http.MethodGet, "/", nil)
				c.Request.RemoteAddr, c.Request.Header = "10.0.0.1:5", header
				resolver := ByClientIP(tiers.Free)
				resolve := func() {
					_, err := resolver.ResolveTier(c)
					require.NoError(t, err)
				}
				resolve() // warns
				const runs = 20
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				for range runs {
					resolve()
				}
				runtime.ReadMemStats(&after)
				require.Less(t, (after.TotalAlloc-before.TotalAlloc)/runs, uint64(20<<10), "bytes")
				require.Less(t, testing.AllocsPerRun(runs, resolve), 200.0, "allocations")
			})
		}
	}
}

func BenchmarkByClientIP(b *testing.B) {
	const plain = "User-Agent: curl/8.5.0\nAccept: */*\nAccept-Encoding: gzip, deflate, br\n"
	requests := hostile()
	requests["plain"] = headersOf(plain)
	requests["one entry"] = headersOf(plain + "X-Forwarded-For: 203.0.113.7")
	for name, setUp := range map[string]func(*gin.Engine){
		"by default":  func(*gin.Engine) {},
		"proxies set": trust("10.0.0.0/8"),
	} {
		for request, header := range requests {
			b.Run(name+"/"+request, func(b *testing.B) {
				c, engine := gin.CreateTestContext(httptest.NewRecorder())
				setUp(engine)
				c.Request = httptest.NewRequest(http.MethodGet, "/", nil)
				c.Request.RemoteAddr, c.Request.Header = "10.0.0.1:5", header
				resolver := ByClientIP(tiers.Free)
				b.ReportAllocs()
				for b.Loop() {
					c.Keys = nil
					if _, err := resolver.ResolveTier(c); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
