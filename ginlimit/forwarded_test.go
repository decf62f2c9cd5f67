package ginlimit

import (
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"
)

// Case I1: whose forwarded addresses count.
func TestByClientIPBelievesTrustedProxies(t *testing.T) {
	const (
		stranger  = "203.0.113.7:5"
		proxy     = "10.0.0.1:5"
		header    = "X-Forwarded-For: " + forged
		ignored   = "203.0.113.7"
		addresses = "X-Client: " + forged
	)
	crowd := noise(500) + header + "\nCf-Connecting-Ip: 9.9.9.9\nX-Appengine-Remote-Addr: 9.9.9.2" +
		"\nFly-Client-Ip: 9.9.9.3"
	byDefault := func(*gin.Engine) {}
	readsXClient := func(e *gin.Engine) { e.RemoteIPHeaders = []string{"X-Client", "X-Forwarded-For"} }
	forwardsNot := func(e *gin.Engine) { trust("10.0.0.0/8")(e); e.ForwardedByClientIP = false }
	for name, tt := range map[string]struct {
		engine       func(*gin.Engine)
		peer, header string
		want         string
		wantWarning  bool
	}{
		"everybody is trusted":       {byDefault, stranger, header, ignored, true},
		"over IPv6 too":              {byDefault, "[2001:db9::1]:5", header, "2001:db9::/64", true},
		"X-Real-IP":                  {byDefault, stranger, "X-Real-IP: " + forged, ignored, true},
		"another header":             {readsXClient, stranger, addresses, ignored, true},
		"a header Gin does not read": {byDefault, stranger, addresses, ignored, false},
		"all of IPv4":                {trust("0.0.0.0/0"), stranger, header, ignored, true},
		"all of IPv4 in halves":      {trust("0.0.0.0/1", "128.0.0.0/1"), stranger, header, ignored, true},
		"all of IPv6":                {trust("::/0"), stranger, header, ignored, true},
		"a forged address of tests":  {trust("0.0.0.0/0"), stranger, "X-Real-IP: 192.0.2.1", ignored, true},
		"nobody":                     {trust(), stranger, header, ignored, false},
		"somebody else":              {trust("10.0.0.0/8"), stranger, header, ignored, false},
		"this proxy":                 {trust("10.0.0.0/8"), proxy, header, forged, false},
		"a documentation network":    {trust("192.0.2.0/24"), "192.0.2.1:5", header, forged, false},
		"two such networks":          {trust("198.51.100.0/24", "203.0.113.0/24"), stranger, header, forged, false},
		"an IPv6 proxy":              {trust("2001:db8:a::/48"), "[2001:db8:a::5]:5", header, forged, false},
		"an IPv4-mapped proxy":       {trust("10.0.0.0/8"), "[::ffff:10.0.0.1]:5", header, forged, false},
		"Gin does not forward":       {forwardsNot, proxy, header, "10.0.0.1", false},

		"a platform header is a choice": {platform("X-Forwarded-For"), stranger, header, forged, false},
		"with a port":                   {platform("X-Forwarded-For"), stranger, header + ":443", forged, false},
		"a list in it":                  {platform("X-Client"), stranger, addresses + ",9.9.9.9", "9.9.9.9", false},
		"rubbish in it":                 {platform("X-Client"), stranger, "X-Client: rubbish", ignored, false},
		"Cloudflare's among many":       {platform("CF-Connecting-IP"), stranger, crowd, "9.9.9.9", false},
		"App Engine's":                  {platform("X-Appengine-Remote-Addr"), stranger, crowd, "9.9.9.2", false},
		"Fly.io's":                      {platform("Fly-Client-IP"), stranger, crowd, "9.9.9.3", false},
	} {
		t.Run(name, func(t *testing.T) {
			warnings := captureWarnings(t)
			a := arrival{remote: tt.peer, header: headersOf(tt.header)}
			ids, errs := resolveAt(tt.engine, a, a)
			for i := range ids {
				require.NoError(t, errs[i])
				require.Equal(t, "ip/"+tt.want, ids[i])
			}
			require.LessOrEqual(t, warnings(), 1, "once, in two requests")
			require.Equal(t, tt.wantWarning, warnings() == 1)
		})
	}
}

// Cases R3, R5: the entries that a trusted proxy may append, and which of them is the client's.
func TestByClientIPReadsForwardedAddresses(t *testing.T) {
	const xff, realIP = "X-Forwarded-For: ", "X-Real-IP: "
	proxies := func(n int) string { return strings.Repeat(", 10.0.0.9:2", n) }
	for header, want := range map[string]string{
		xff + "203.0.113.7":                                       "203.0.113.7",
		xff + "203.0.113.7:61598":                                 "203.0.113.7",
		xff + "203.0.113.7:":                                      "203.0.113.7",
		xff + "203.0.113.7:99999":                                 "203.0.113.7",
		xff + "203.0.113.7:_hidden":                               "203.0.113.7",
		xff + " \t203.0.113.7:1 \t":                               "203.0.113.7",
		xff + "2001:db8:7::1":                                     "2001:db8:7::/64",
		xff + "[2001:db8:7::1]":                                   "2001:db8:7::/64",
		xff + "[2001:db8:7::1]:443":                               "2001:db8:7::/64",
		xff + `"[2001:db8:7::1]:443"`:                             "2001:db8:7::/64",
		xff + "fe80::1%eth0":                                      "fe80::/64",
		xff + "[fe80::1%eth0]:443":                                "fe80::/64",
		xff + "::ffff:9.9.9.9":                                    "9.9.9.9",
		xff + "[::ffff:9.9.9.9]:1":                                "9.9.9.9",
		xff + "[64:ff9b::909:909]:1":                              "9.9.9.9",
		xff + "[2002:909:909::1]:1":                               "9.9.9.9",
		realIP + "203.0.113.7:61598":                              "203.0.113.7",
		"X-Client: 203.0.113.7":                                   "10.0.0.1", // Gin does not read it
		xff + "rubbish":                                           "10.0.0.1",
		xff + "[2001:db8:7::1":                                    "10.0.0.1",
		xff + "203.0.113.7 203.0.113.8":                           "10.0.0.1",
		xff + strings.Repeat("0", 99) + ".7":                      "10.0.0.1",
		xff + forged + "," + strings.Repeat(" ", 99) + "10.0.0.9": "10.0.0.1",
		xff + forged + ", 203.0.113.7:1":                          "203.0.113.7",
		xff + "rubbish, 203.0.113.7:1":                            "203.0.113.7",
		xff + "203.0.113.7:1,\n" + xff:                            "203.0.113.7",
		xff + "10.0.0.8:1, 10.0.0.9:2":                            "10.0.0.8",
		xff + forged + ", rubbish, 10.0.0.9":                      "10.0.0.1",
		xff + forged + "\n" + xff + "9.9.9.9":                     "9.9.9.9",
		xff + forged + ", 9.9.9.9:1, 10.0.0.9:2\n" + xff + "[2001:db8:a::7]:3": "9.9.9.9",
		xff + forged + ", 9.9.9.9:1" + proxies(15):                             "9.9.9.9",
		xff + forged + ", 9.9.9.9:1" + proxies(16):                             "10.0.0.1",
		xff + "rubbish, 10.0.0.9\n" + realIP + "9.9.9.9:1":                     "9.9.9.9",
		realIP + forged + "\n" + xff + "9.9.9.9:1":                             "9.9.9.9",
		noise(500) + xff + "203.0.113.7:1":                                     "203.0.113.7",
	} {
		t.Run(header[max(0, len(header)-60):], func(t *testing.T) {
			a := arrival{remote: "10.0.0.1:5", header: headersOf(header)}
			ids, errs := resolveAt(trust("10.0.0.0/8", "2001:db8:a::/48"), a)
			require.NoError(t, errs[0])
			require.Equal(t, "ip/"+want, ids[0])
		})
	}
}

// Gin's own list of headers counts, in its order.
func TestByClientIPReadsTheHeadersThatGinReads(t *testing.T) {
	engine := func(e *gin.Engine) {
		trust("10.0.0.0/8")(e)
		e.RemoteIPHeaders = []string{"X-Client", "X-Forwarded-For"}
	}
	for header, want := range map[string]string{
		"X-Client: 9.9.9.9:1":                                 "9.9.9.9",
		"X-Client: 9.9.9.9:1\nX-Forwarded-For: " + forged:     "9.9.9.9",
		"X-Client: 10.0.0.1, -\nX-Forwarded-For: 9.9.9.9:1":   "9.9.9.9",
		"X-Real-IP: " + forged + "\nX-Forwarded-For: 9.9.9.9": "9.9.9.9",
		"X-Real-IP: " + forged:                                "10.0.0.1",
		noise(500) + "X-Client: " + forged:                    "10.0.0.1", // too many to find it
	} {
		t.Run(header[max(0, len(header)-60):], func(t *testing.T) {
			ids, errs := resolveAt(engine, arrival{remote: "10.0.0.1:5", header: headersOf(header)})
			require.NoError(t, errs[0])
			require.Equal(t, "ip/"+want, ids[0])
		})
	}
}

// noise are lines of n headers that hold addresses and that no engine reads.
func noise(n int) string {
	var lines strings.Builder
	for i := range n {
		lines.WriteString("X-Noise-" + strings.Repeat("a", i) + ": " + forged + "\n")
	}
	return lines.String()
}
