package ginlimit

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
	"github.com/gin-tiers/ratelimit/tiers"
)

func init() { gin.SetMode(gin.TestMode) }

func testContext(keys map[any]any) *gin.Context {
	c, _ := gin.CreateTestContext(httptest.NewRecorder())
	c.Request = httptest.NewRequest(http.MethodGet, "/", nil)
	c.Keys = keys
	return c
}

type userID int64

type nilStringer struct{ id string }

func (s *nilStringer) String() string { return s.id }

func TestFromContext(t *testing.T) {
	id := uuid.MustParse("8f14e45f-ceea-467f-a8c5-3a4bb2f0c1d2")
	type plan string
	for name, tt := range map[string]struct {
		user, tier any
		want       Subject
		wantErr    string
	}{
		"strings":           {"alice", "pro", Subject{"alice", tiers.Pro}, ""},
		"a tier":            {"alice", tiers.Enterprise, Subject{"alice", tiers.Enterprise}, ""},
		"an int":            {8421, tiers.Pro, Subject{"8421", tiers.Pro}, ""},
		"a uint64":          {uint64(1<<64 - 1), tiers.Pro, Subject{"18446744073709551615", tiers.Pro}, ""},
		"a type of its own": {userID(-7), tiers.Pro, Subject{"-7", tiers.Pro}, ""},
		"a Stringer":        {id, tiers.Pro, Subject{id.String(), tiers.Pro}, ""},
		"no tier":           {"alice", nil, Subject{"alice", ""}, ""},
		"an address":        {"ip/203.0.113.7", nil, Subject{"ip/203.0.113.7", ""}, ""},
		"nobody":            {nil, "pro", Subject{}, ErrNoSubject.Error()},
		"an empty id":       {"", "pro", Subject{}, ErrNoSubject.Error()},
		"a nil Stringer":    {(*nilStringer)(nil), "pro", Subject{}, ErrNoSubject.Error()},
		"an empty Stringer": {&nilStringer{}, "pro", Subject{}, ErrNoSubject.Error()},
		"a float":           {1.5, "pro", Subject{}, `user id under "user": float64`},
		"a struct":          {struct{}{}, "pro", Subject{}, `user id under "user": struct {}`},
		"bytes":             {[]byte("alice"), "pro", Subject{}, `user id under "user": []uint8`},
		"a tier of no use":  {"alice", 3, Subject{}, `tier under "tier": int`},
		"a tier type":       {"alice", plan("pro"), Subject{"alice", tiers.Pro}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			keys := map[any]any{}
			if tt.user != nil {
				keys["user"] = tt.user
			}
			if tt.tier != nil {
				keys["tier"] = tt.tier
			}
			got, err := FromContext("user", "tier").ResolveTier(testContext(keys))
			if tt.wantErr != "" {
				require.ErrorContains(t, err, tt.wantErr)
				require.Equal(t, tt.wantErr == ErrNoSubject.Error(), errors.Is(err, ErrNoSubject))
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestHashedID(t *testing.T) {
	require.Empty(t, HashedID(""))
	require.Equal(t, HashedID("sk-secret"), HashedID("sk-secret"))
	require.NotEqual(t, HashedID("sk-secret"), HashedID("sk-secret2"))
	require.NotContains(t, HashedID("sk-secret"), "secret")
	require.Equal(t, HashedID("sk-secret"), budget.EncodePart(HashedID("sk-secret")), "it stands in a key as it is")
}

func TestByClientIP(t *testing.T) {
	const spoofed = "198.51.100.99"
	trustNone := func(e *gin.Engine) { _ = e.SetTrustedProxies(nil) }
	trust := func(cidrs ...string) func(*gin.Engine) { return func(e *gin.Engine) { _ = e.SetTrustedProxies(cidrs) } }
	for name, tt := range map[string]struct {
		remote, forwarded string
		engine            func(*gin.Engine)
		want              string // "" = an error
		wantWarning       bool
	}{
		"an IPv4 peer":                           {"203.0.113.7:5", "", nil, "ip/203.0.113.7", false},
		"without a port":                         {"203.0.113.7", "", nil, "ip/203.0.113.7", false},
		"an IPv6 peer":                           {"[2001:db8:1:2:3:4:5:6]:80", "", nil, "ip/2001:db8:1:2::/64", false},
		"another address of its /64":             {"[2001:db8:1:2:ffff::1]:80", "", nil, "ip/2001:db8:1:2::/64", false},
		"IPv6 without a port":                    {"::1", "", nil, "ip/::/64", false},
		"IPv6 in brackets":                       {"[::1]", "", nil, "ip/::/64", false},
		"a zone":                                 {"[fe80::1%eth0]:80", "", nil, "ip/fe80::/64", false},
		"IPv4-mapped":                            {"[::ffff:1.2.3.4]:80", "", nil, "ip/1.2.3.4", false},
		"IPv4-mapped in hex":                     {"[::ffff:102:304]:80", "", nil, "ip/1.2.3.4", false},
		"nothing":                                {"", "", nil, "", false},
		"rubbish":                                {"rubbish", "", nil, "", false},
		"Gin trusts everybody: not believed":     {"203.0.113.7:5", spoofed, nil, "ip/203.0.113.7", true},
		"over IPv6 too":                          {"[2001:db9::1]:5", spoofed, nil, "ip/2001:db9::/64", true},
		"no proxy is trusted":                    {"203.0.113.7:5", spoofed, trustNone, "ip/203.0.113.7", false},
		"all of IPv4 is everybody":               {"203.0.113.7:5", spoofed, trust("0.0.0.0/0"), "ip/203.0.113.7", true},
		"a trusted proxy is believed":            {"10.0.0.1:5", spoofed, trust("10.0.0.0/8"), "ip/" + spoofed, false},
		"its IPv6 client":                        {"10.0.0.1:5", "2001:db8:7::1", trust("10.0.0.0/8"), "ip/2001:db8:7::/64", false},
		"its IPv4-mapped client":                 {"10.0.0.1:5", "::ffff:9.9.9.9", trust("10.0.0.0/8"), "ip/9.9.9.9", false},
		"a documentation network may be trusted": {"192.0.2.1:5", spoofed, trust("192.0.2.0/24"), "ip/" + spoofed, false},
		"another proxy is not":                   {"203.0.113.7:5", spoofed, trust("10.0.0.0/8"), "ip/203.0.113.7", false},
		"a trusted proxy that forwards rubbish":  {"10.0.0.1:5", "rubbish", trust("10.0.0.0/8"), "ip/10.0.0.1", false},
		"a platform header is a choice": {"203.0.113.7:5", spoofed,
			func(e *gin.Engine) { e.TrustedPlatform = "X-Forwarded-For" }, "ip/" + spoofed, false},
		"a platform header with a port": {"203.0.113.7:5", "[2001:db8:7::1]:443",
			func(e *gin.Engine) { e.TrustedPlatform = "X-Forwarded-For" }, "ip/2001:db8:7::/64", false},
		"rubbish in a platform header": {"203.0.113.7:5", "rubbish",
			func(e *gin.Engine) { e.TrustedPlatform = "X-Forwarded-For" }, "ip/203.0.113.7", false},
		"headers that Gin was told to read": {"203.0.113.7:5", spoofed,
			func(e *gin.Engine) { e.RemoteIPHeaders = []string{"X-Other", "X-Forwarded-For"} }, "ip/203.0.113.7", true},
	} {
		t.Run(name, func(t *testing.T) {
			logs := captureWarnings(t)
			resolve := ByClientIP(tiers.Free)
			for range 2 {
				c, engine := gin.CreateTestContext(httptest.NewRecorder())
				if tt.engine != nil {
					tt.engine(engine)
				}
				c.Request = httptest.NewRequest(http.MethodGet, "/", nil)
				c.Request.RemoteAddr = tt.remote
				if tt.forwarded != "" {
					c.Request.Header.Set("X-Forwarded-For", tt.forwarded)
				}
				got, err := resolve.ResolveTier(c)
				if tt.want == "" {
					require.Error(t, err)
					require.NotErrorIs(t, err, ErrNoSubject)
					continue
				}
				require.NoError(t, err)
				require.Equal(t, Subject{UserID: tt.want, Tier: tiers.Free}, got)
			}
			want := 0
			if tt.wantWarning {
				want = 1
			}
			require.Equal(t, want, logs(), "warnings, in two requests")
		})
	}
}
