package ginlimit

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/tiers"
)

// arrival is a request as a server sees it.
type arrival struct {
	remote string
	header http.Header
	socket bool // it came by a listener on a Unix socket
}

// resolveAt resolves the arrivals in turn by one resolver on an engine that is set up so.
func resolveAt(setUp func(*gin.Engine), arrivals ...arrival) (ids []string, errs []error) {
	engine, resolver := gin.New(), ByClientIP(tiers.Free)
	if setUp != nil {
		setUp(engine)
	}
	engine.GET("/", func(c *gin.Context) {
		s, err := resolver.ResolveTier(c)
		ids, errs = append(ids, s.UserID), append(errs, err)
	})
	for _, a := range arrivals {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr, r.Header = a.remote, a.header
		if a.socket {
			addr := net.Addr(&net.UnixAddr{Name: "/run/api.sock", Net: "unix"})
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, addr))
		}
		engine.ServeHTTP(httptest.NewRecorder(), r)
	}
	return ids, errs
}

// headers reads lines of "Name: value".
func headersOf(text string) http.Header {
	h := http.Header{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		h.Add(name, value)
	}
	return h
}

func trust(cidrs ...string) func(*gin.Engine) {
	return func(e *gin.Engine) {
		if err := e.SetTrustedProxies(cidrs); err != nil {
			panic(err)
		}
	}
}

func platform(name string) func(*gin.Engine) { return func(e *gin.Engine) { e.TrustedPlatform = name } }

const forged = "198.51.100.99"

// Case I5: what a connection's address may look like.
func TestByClientIPReadsThePeer(t *testing.T) {
	for remote, want := range map[string]string{
		"203.0.113.7:5":                "ip/203.0.113.7",
		"203.0.113.7":                  "ip/203.0.113.7",
		"[2001:db8:1:2:3:4:5:6]:80":    "ip/2001:db8:1:2::/64",
		"[2001:db8:1:2:ffff::1]:80":    "ip/2001:db8:1:2::/64",
		"::1":                          "ip/::/64",
		"[::1]":                        "ip/::/64",
		"[fe80::1%eth0]:80":            "ip/fe80::/64",
		"[::ffff:1.2.3.4]:80":          "ip/1.2.3.4",
		"[::ffff:102:304]:80":          "ip/1.2.3.4",
		"[::ffff:1.2.3.4%eth0]:80":     "ip/1.2.3.4",
		"[64:ff9b::808:808]:80":        "ip/8.8.8.8", // case R5, here and below
		"[64:ff9b::9.9.9.9]:80":        "ip/9.9.9.9",
		"[64:ff9b::808:808%eth0]:80":   "ip/8.8.8.8",
		"[64:ff9b::1:0:808:808]:80":    "ip/64:ff9b::/64",
		"[64:ff9b:1::808:808]:80":      "ip/64:ff9b:1::/64",
		"[2002:808:808::1]:80":         "ip/8.8.8.8",
		"[2002:808:808:ffff:1::1]:80":  "ip/8.8.8.8",
		"[2002:909:909::1]:80":         "ip/9.9.9.9",
		"[2003:808:808::1]:80":         "ip/2003:808:808::/64",
		"[2001:0:4136:e378:8000::]:80": "ip/2001:0:4136:e378::/64",
		"":                             "",
		"@":                            "",
		"rubbish":                      "",
		"[::1":                         "",
		"1.2.3.4.5:6":                  "",
	} {
		t.Run(remote, func(t *testing.T) {
			ids, errs := resolveAt(nil, arrival{remote: remote})
			if want == "" {
				require.ErrorContains(t, errs[0], "ginlimit: client address: ")
				require.NotErrorIs(t, errs[0], ErrNoSubject)
				return
			}
			require.NoError(t, errs[0])
			require.Equal(t, want, ids[0])
		})
	}
}

// Case R4: on a Unix socket the peer has no address, and Gin believes it whatever proxies it trusts.
func TestByClientIPOnAUnixSocket(t *testing.T) {
	const xff, entries = "X-Forwarded-For: ", "X-Forwarded-For: " + forged + ", 203.0.113.7"
	noForwarding := func(e *gin.Engine) { e.ForwardedByClientIP = false }
	for name, tt := range map[string]struct {
		engine      func(*gin.Engine)
		header      string
		want        string // "": an error
		wantWarning bool
	}{
		"what the peer appended":     {nil, entries, "203.0.113.7", true},
		"on a line of its own":       {nil, xff + forged + "\n" + xff + "203.0.113.7", "203.0.113.7", true},
		"with a port":                {nil, entries + ":61598", "203.0.113.7", true},
		"one entry":                  {nil, xff + "[2001:db8:7::1]:443", "2001:db8:7::/64", true},
		"X-Real-IP":                  {nil, "X-Real-IP: 203.0.113.7", "203.0.113.7", true},
		"a header Gin does not read": {nil, "X-Client: 203.0.113.7", "", false},
		"nothing forwarded":          {nil, "", "", false},
		"rubbish":                    {nil, entries + ", rubbish", "", false},
		"Gin does not forward":       {noForwarding, entries, "", false},
		"no proxy trusted":           {trust(), entries + ":1", "203.0.113.7", false},
		"past trusted proxies":       {trust("10.0.0.0/8"), entries + ":1, 10.0.0.9:2", "203.0.113.7", false},
		"all of IPv4 trusted":        {trust("0.0.0.0/0"), entries, "203.0.113.7", true},
		"a platform header":          {platform("X-Forwarded-For"), xff + "203.0.113.7:1", "203.0.113.7", false},
	} {
		for _, remote := range []string{"", "@", "@client", "/run/client.sock"} {
			for _, socket := range []bool{true, false} {
				t.Run(name+" "+remote, func(t *testing.T) {
					logs := captureLogs(t)
					a := arrival{remote, headersOf(tt.header), socket}
					ids, errs := resolveAt(tt.engine, a, a)
					for i := range ids {
						if tt.want == "" {
							require.ErrorContains(t, errs[i], "ginlimit: client address: ")
							continue
						}
						require.NoError(t, errs[i])
						require.Equal(t, "ip/"+tt.want, ids[i])
					}
					if tt.wantWarning {
						require.Equal(t, 1, strings.Count(logs(), "level=WARN"))
						require.Contains(t, logs(), "SetTrustedProxies")
					} else {
						require.Empty(t, logs())
					}
				})
			}
		}
	}
}

// What an engine trusts may be told after the first request.
func TestByClientIPHeedsALaterSetTrustedProxies(t *testing.T) {
	engine, resolver, id := gin.New(), ByClientIP(tiers.Free), ""
	engine.GET("/", func(c *gin.Context) {
		s, err := resolver.ResolveTier(c)
		require.NoError(t, err)
		id = s.UserID
	})
	get := func() string {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr, r.Header = "10.0.0.1:5", headersOf("X-Forwarded-For: 9.9.9.9")
		engine.ServeHTTP(httptest.NewRecorder(), r)
		return id
	}
	captureLogs(t)
	require.Equal(t, "ip/10.0.0.1", get())
	trust("10.0.0.0/8")(engine)
	require.Equal(t, "ip/9.9.9.9", get())
}

// One resolver may serve several engines.
func TestByClientIPOnTwoEngines(t *testing.T) {
	captureLogs(t)
	resolver := ByClientIP(tiers.Free)
	for _, tt := range []struct {
		engine func(*gin.Engine)
		want   string
	}{{func(*gin.Engine) {}, "ip/10.0.0.1"}, {trust("10.0.0.0/8"), "ip/9.9.9.9"}, {trust(), "ip/10.0.0.1"}} {
		c, engine := gin.CreateTestContext(httptest.NewRecorder())
		tt.engine(engine)
		c.Request = httptest.NewRequest(http.MethodGet, "/", nil)
		c.Request.RemoteAddr, c.Request.Header = "10.0.0.1:5", headersOf("X-Forwarded-For: 9.9.9.9")
		s, err := resolver.ResolveTier(c)
		require.NoError(t, err)
		require.Equal(t, Subject{UserID: tt.want, Tier: tiers.Free}, s)
	}
}
