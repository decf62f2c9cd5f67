package ginlimit

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

type (
	claim   float64
	claim32 float32
	named   string
)

func TestFromContextReadsTheUser(t *testing.T) {
	id := uuid.MustParse("8f14e45f-ceea-467f-a8c5-3a4bb2f0c1d2")
	number := json.Number("8421")
	for name, tt := range map[string]struct {
		user    any
		want    string // "": an error, or nobody
		wantErr string
	}{
		"a string":          {"alice", "alice", ""},
		"a string's type":   {named("alice"), "alice", ""},
		"an address":        {"ip/203.0.113.7", "ip/203.0.113.7", ""},
		"an int":            {8421, "8421", ""},
		"a uint64":          {uint64(1<<64 - 1), "18446744073709551615", ""},
		"an integer's type": {userID(-7), "-7", ""},
		"a Stringer":        {id, id.String(), ""},

		// Case R12: numeric claims.
		"a float64":                  {float64(8421), "8421", ""},
		"zero":                       {0.0, "0", ""},
		"a negative float64":         {-7.0, "-7", ""},
		"one with an exponent":       {1e15, "1000000000000000", ""},
		"the largest":                {float64(1<<53 - 1), "9007199254740991", ""},
		"the smallest":               {-float64(1<<53 - 1), "-9007199254740991", ""},
		"a float64's type":           {claim(8421), "8421", ""},
		"a float32":                  {float32(8421), "8421", ""},
		"the largest float32":        {float32(1<<24 - 1), "16777215", ""},
		"a float32's type":           {claim32(-8421), "-8421", ""},
		"a json.Number":              {number, "8421", ""},
		"a negative json.Number":     {json.Number("-7"), "-7", ""},
		"a json.Number of 0":         {json.Number("0"), "0", ""},
		"a large json.Number":        {json.Number("18446744073709551616"), "18446744073709551616", ""},
		"a pointer to a json.Number": {&number, "8421", ""},
		"a fraction":                 {1.5, "", "float64 1.5 is no whole number below 2^53"},
		"a small fraction":           {1e-9, "", "float64 1e-09 is no whole number below 2^53"},
		"NaN":                        {math.NaN(), "", "float64 NaN is no whole number below 2^53"},
		"infinity":                   {math.Inf(1), "", "float64 +Inf is no whole number below 2^53"},
		"negative infinity":          {math.Inf(-1), "", "float64 -Inf is no whole number below 2^53"},
		"negative zero":              {math.Copysign(0, -1), "", "float64 -0 is no whole number below 2^53"},
		"2^53":                       {float64(1 << 53), "", "float64 9.007199254740992e+15 is no whole number"},
		"-2^53":                      {-float64(1 << 53), "", "is no whole number below 2^53"},
		"a float64's type of 1.5":    {claim(1.5), "", "ginlimit.claim 1.5 is no whole number below 2^53"},
		"a float32 of 2^24":          {float32(1 << 24), "", "float32 1.6777216e+07 is no whole number below 2^24"},
		"a float32 of 1.5":           {float32(1.5), "", "float32 1.5 is no whole number below 2^24"},
		"a json.Number of 1.5":       {json.Number("1.5"), "", `json.Number "1.5" is no whole number`},
		"one of 1.0":                 {json.Number("1.0"), "", `json.Number "1.0" is no whole number`},
		"one of 1e3":                 {json.Number("1e3"), "", `json.Number "1e3" is no whole number`},
		"one of -0":                  {json.Number("-0"), "", `json.Number "-0" is no whole number`},
		"one of 007":                 {json.Number("007"), "", `json.Number "007" is no whole number`},
		"one of +7":                  {json.Number("+7"), "", `json.Number "+7" is no whole number`},
		"one of a sign":              {json.Number("-"), "", `json.Number "-" is no whole number`},
		"one of NaN":                 {json.Number("NaN"), "", `json.Number "NaN" is no whole number`},
		"a pointer to one of 1.5":    {new(json.Number("1.5")), "", `json.Number "1.5" is no whole number`},
		"a complex number":           {complex(8421, 0), "", "complex128 is no string, number or fmt.Stringer"},
		"a bool":                     {true, "", "bool is no string, number or fmt.Stringer"},
		"a pointer to a string":      {new("alice"), "", "*string is no string, number or fmt.Stringer"},
		"a pointer to a float64":     {new(8421.0), "", "*float64 is no string, number or fmt.Stringer"},
		"a struct":                   {struct{}{}, "", "struct {} is no string, number or fmt.Stringer"},
		"bytes":                      {[]byte("alice"), "", "[]uint8 is no string, number or fmt.Stringer"},
		"nobody":                     {nil, "", ""},
		"an empty string":            {"", "", ""},
		"an empty json.Number":       {json.Number(""), "", ""},
		"a nil Stringer":             {(*nilStringer)(nil), "", ""},
		"an empty Stringer":          {&nilStringer{}, "", ""},
		"a nil pointer":              {(*string)(nil), "", ""},
		"a nil pointer to a Number":  {(*json.Number)(nil), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			keys := map[any]any{"tier": "pro"}
			if tt.user != nil {
				keys["user"] = tt.user
			}
			got, err := FromContext("user", "tier").ResolveTier(testContext(keys))
			switch {
			case tt.wantErr != "":
				require.ErrorContains(t, err, `ginlimit: user id under "user": `)
				require.ErrorContains(t, err, tt.wantErr)
				require.NotErrorIs(t, err, ErrNoSubject)
			case tt.want == "":
				require.ErrorIs(t, err, ErrNoSubject)
			default:
				require.NoError(t, err)
				require.Equal(t, Subject{UserID: tt.want, Tier: tiers.Pro}, got)
			}
		})
	}
}

func TestFromContextReadsTheTier(t *testing.T) {
	for name, tt := range map[string]struct {
		tier    any
		want    tiers.Tier
		wantErr string
	}{
		"a tier":    {tiers.Enterprise, tiers.Enterprise, ""},
		"a string":  {"pro", tiers.Pro, ""},
		"its type":  {named("pro"), tiers.Pro, ""},
		"none":      {nil, "", ""},
		"an int":    {3, "", `tier under "tier": int is no tiers.Tier or other string`},
		"a float64": {3.0, "", `tier under "tier": float64 is no tiers.Tier or other string`},
	} {
		t.Run(name, func(t *testing.T) {
			keys := map[any]any{"user": "alice"}
			if tt.tier != nil {
				keys["tier"] = tt.tier
			}
			got, err := FromContext("user", "tier").ResolveTier(testContext(keys))
			if tt.wantErr != "" {
				require.ErrorContains(t, err, tt.wantErr)
				return
			}
			require.NoError(t, err)
			require.Equal(t, Subject{UserID: "alice", Tier: tt.want}, got)
		})
	}
}

// Case R12: what the auth middleware stores does not change by itself, so a misfit is told once, however long
// it lasts; and also where another error of a look-up has just been logged.
func TestFromContextMisfitIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := captureLogs(t)
		resolver, broken := FromContext("user", "tier"), true
		limit := New(NewMemoryLimiter(), TierResolverFunc(func(c *gin.Context) (Subject, error) {
			if broken {
				return Subject{}, errors.New("database is down")
			}
			s, err := resolver.ResolveTier(c)
			if err != nil {
				err = fmt.Errorf("resolver: %w", err)
			}
			return s, err
		}))
		ask := func(user any) {
			c := testContext(map[any]any{"user": user})
			limit(c)
			require.Equal(t, http.StatusServiceUnavailable, c.Writer.Status())
		}
		ask(nil)
		broken = false
		for range 200 {
			ask(1.5)
			ask(math.NaN())
			time.Sleep(100 * time.Millisecond)
		}
		require.Equal(t, 1, strings.Count(logs(), "database is down"))
		require.Equal(t, 1, strings.Count(logs(), "is no whole number below 2^53"))
		broken = true
		ask(nil)
		require.Equal(t, 2, strings.Count(logs(), "database is down"), "others are logged as ever")
	})
}

func TestFirstOf(t *testing.T) {
	knows := func(s Subject, err error) TierResolver {
		return TierResolverFunc(func(*gin.Context) (Subject, error) { return s, err })
	}
	alice, down := Subject{UserID: "alice", Tier: tiers.Pro}, errors.New("the user store is down")
	address := knows(Subject{UserID: "ip/203.0.113.7"}, nil)
	for _, tc := range []struct {
		name      string
		resolvers []TierResolver
		want      Subject
		err       error
	}{
		{"the first that knows", []TierResolver{knows(alice, nil), address}, alice, nil},
		{"nobody signed in", []TierResolver{knows(Subject{}, fmt.Errorf("no token: %w", ErrNoSubject)), address},
			Subject{UserID: "ip/203.0.113.7"}, nil},
		{"no id", []TierResolver{knows(Subject{Tier: tiers.Pro}, nil), address},
			Subject{UserID: "ip/203.0.113.7"}, nil},
		{"nobody at all", []TierResolver{knows(Subject{}, nil), knows(Subject{}, ErrNoSubject)},
			Subject{}, ErrNoSubject},
		{"a look-up that is down", []TierResolver{knows(Subject{}, down), address}, Subject{}, down},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := FirstOf(tc.resolvers...).ResolveTier(nil)
			require.ErrorIs(t, err, tc.err)
			require.Equal(t, tc.want, got)
		})
	}
	require.PanicsWithValue(t, "ginlimit: FirstOf: no resolver", func() { FirstOf() })
	require.PanicsWithValue(t, "ginlimit: FirstOf: resolver is nil", func() { FirstOf(address, nil) })
}

func TestHashedID(t *testing.T) {
	require.Empty(t, HashedID(""))
	require.Equal(t, HashedID("sk-secret"), HashedID("sk-secret"))
	require.NotEqual(t, HashedID("sk-secret"), HashedID("sk-secret2"))
	require.NotContains(t, HashedID("sk-secret"), "secret")
	id := HashedID("sk-secret")
	require.Equal(t, id, budget.EncodePart(id), "it stands in a key as it is")
}
