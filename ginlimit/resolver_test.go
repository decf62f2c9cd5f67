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
	id := HashedID("sk-secret")
	require.Equal(t, id, budget.EncodePart(id), "it stands in a key as it is")
}
