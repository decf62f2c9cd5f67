package redisstore

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
	"github.com/gin-tiers/ratelimit/ginlimit/internal/storetest"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// formsOf are claims of all forms of one owner, of 60 tokens; the first two are of requests.
func formsOf(user string) []budget.Claim {
	return []budget.Claim{
		{Key: user + ":60", Budget: requests(100, budget.Minute)},
		{Key: user + ":86400:requests", Budget: budget.Budget{
			Dimension: budget.Dimension{Window: budget.Day, Bounded: true}, Limit: 100}, Cost: 1},
		{Key: user + ":60:tokens", Budget: budget.Budget{
			Dimension: budget.Dimension{Window: budget.Minute, Unit: budget.Tokens}, Limit: 100}, Cost: 60},
		{
			Key:    user + ":leases",
			Budget: budget.Budget{Dimension: budget.Dimension{Unit: budget.Concurrent}, Limit: 3},
		},
	}
}

func usedOf(t *testing.T, s *Store, claims []budget.Claim) (used []int) {
	t.Helper()
	verdicts, err := s.Peek(t.Context(), claims)
	require.NoError(t, err)
	for _, v := range verdicts {
		used = append(used, v.Used)
	}
	return used
}

// A Redis whose memory is full goes on admitting, renewing and finishing, with a log among the claims or
// without, as one whose scripts free memory first. E5.
func TestFormsInFullMemory(t *testing.T) {
	for name, from := range map[string]int{"with a log": 0, "tokens alone": 2} {
		t.Run(name, func(t *testing.T) {
			rdb := redistest.Start(t).Client(t)
			c := storetest.NewClock()
			s := New(rdb, c.Now, false)
			claims := formsOf("alice")[from:]
			require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
			require.True(t, redis.IsOOMError(rdb.Set(t.Context(), "key", "value", 0).Err()))

			verdicts, at, err := s.Admit(t.Context(), "a", claims)
			require.NoError(t, err)
			require.Len(t, verdicts, len(claims))
			c.Set(10_000)
			require.NoError(t, s.Renew(t.Context(), []budget.Held{{Key: "alice:leases", ID: "a"}}))
			c.Set(20_000)
			require.Equal(t, []int{1, 1, 60, 1}[from:], usedOf(t, s, claims), "renewed")
			verdicts, _, err = s.Admit(t.Context(), "b", claims)
			require.NoError(t, err)
			require.Equal(t, budget.Verdict{Used: 60, RetryAfter: 40 * time.Second}, verdicts[2-from])

			used := []int{1, 1, 15, 0}[from:]
			require.NoError(t, s.Finish(t.Context(), budget.Admission{ID: "a", At: at, Claims: claims}, used))
			require.Equal(t, used, usedOf(t, s, claims))
			require.True(t, redis.IsOOMError(rdb.Set(t.Context(), "key", "value", 0).Err()), "it is full still")
		})
	}
}

// A user whom Redis lets run no GET or no SET has no bounded windows; what cannot be decided writes nothing,
// and logs and leases go on.
func TestFormsWithoutACommand(t *testing.T) {
	for _, command := range []string{"get", "set"} {
		t.Run(command, func(t *testing.T) {
			srv := redistest.Start(t)
			admin := srv.Client(t)
			require.NoError(
				t,
				admin.Do(t.Context(), "acl", "setuser", "limiter", "on", ">pw", "~*", "+@all", "-"+command).Err(),
			)
			rdb := redis.NewClient(&redis.Options{Addr: srv.Addr, Username: "limiter", Password: "pw"})
			t.Cleanup(func() { _ = rdb.Close() })
			s, claims := New(rdb, nil, false), formsOf("alice")
			for range 3 {
				_, _, err := s.Admit(t.Context(), uuid.NewString(), claims)
				require.ErrorContains(t, err, "can't run this command")
				require.Empty(t, admin.Keys(t.Context(), "*").Val(), "nothing is written")
			}
			for _, rest := range [][]budget.Claim{claims[:1], {claims[0], claims[3]}} {
				verdicts, at, err := s.Admit(t.Context(), uuid.NewString(), rest)
				require.NoError(t, err)
				require.True(t, verdicts[len(rest)-1].Allowed)
				require.NoError(t, s.Finish(t.Context(), budget.Admission{ID: "a", At: at, Claims: rest}, nil))
			}
		})
	}
}

// A key of another type or content fails the whole admission, before anything is written; ending a request
// ends its lease all the same. C9.
func TestFormsOnForeignKeys(t *testing.T) {
	for name, spoil := range map[string]func(rdb *redis.Client, key string) error{
		"text":  func(rdb *redis.Client, key string) error { return rdb.Set(t.Context(), key, "foreign", 0).Err() },
		"empty": func(rdb *redis.Client, key string) error { return rdb.Set(t.Context(), key, "", 0).Err() },
		"long": func(rdb *redis.Client, key string) error {
			return rdb.Set(t.Context(), key, rand.Text(), 0).Err()
		},
		"list": func(rdb *redis.Client, key string) error { return rdb.LPush(t.Context(), key, "x").Err() },
	} {
		for at, claim := range formsOf("") {
			t.Run(name+" at "+claim.Key, func(t *testing.T) {
				rdb := redistest.Client(t)
				s, user := New(rdb, nil, false), uuid.NewString()
				claims := formsOf(user)
				_, admitted, err := s.Admit(t.Context(), "a", claims)
				require.NoError(t, err)
				require.NoError(t, rdb.Del(t.Context(), claims[at].Key).Err())
				require.NoError(t, spoil(rdb, claims[at].Key))
				before := dumpOf(t, rdb, claims)
				_, _, err = s.Admit(t.Context(), "b", claims)
				require.Error(t, err)
				_, err = s.Peek(t.Context(), claims)
				require.Error(t, err)
				require.Equal(t, before, dumpOf(t, rdb, claims))

				err = s.Finish(t.Context(), budget.Admission{ID: "a", At: admitted, Claims: claims}, []int{1, 0, 10, 0})
				if at > 0 { // the log is not looked at
					require.Error(t, err)
				}
				require.Zero(t, rdb.ZCard(t.Context(), user+":leases").Val())
			})
		}
	}
}

// A key that others have spoiled costs its own user the lease, and no other one. One call for all. R10.
func TestRenewPastAForeignKey(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	c := storetest.NewClock()
	s := New(rdb, c.Now, true)
	var held []budget.Held
	users := []string{"alice", "bob", "carol"}
	for _, user := range users {
		_, _, err := s.Admit(t.Context(), "a", formsOf(user))
		require.NoError(t, err)
		held = append(held, budget.Held{Key: user + ":leases", ID: "a"})
	}
	require.NoError(t, rdb.Set(t.Context(), "bob:leases", "foreign", 0).Err())
	c.Set(10_000)
	require.ErrorContains(t, s.Renew(t.Context(), held), "WRONGTYPE")
	c.Set(20_000)
	for _, user := range []string{"alice", "carol"} {
		require.Equal(t, 1, usedOf(t, s, formsOf(user))[3], user)
	}
}

func dumpOf(t *testing.T, rdb *redis.Client, claims []budget.Claim) (all []string) {
	t.Helper()
	for _, c := range claims {
		all = append(all, rdb.Dump(t.Context(), c.Key).Val())
	}
	return all
}

// A clock that goes back again and again adds no records: a value keeps its bound.
func TestASumKeepsItsBound(t *testing.T) {
	rdb := redistest.Client(t)
	c := storetest.NewClock()
	s, user := New(rdb, c.Now, false), uuid.NewString()
	claims := formsOf(user)
	claims[2].Limit, claims[2].Cost = 1<<40, 1
	for i := range int64(600) {
		c.Set(i*150 + i%3*1_000)
		_, _, err := s.Admit(
			t.Context(),
			uuid.NewString(),
			[]budget.Claim{claims[2], {Key: user + ":leases", Budget: budget.Budget{
				Dimension: budget.Dimension{Unit: budget.Concurrent}, Limit: budget.NoLimit}}},
		)
		require.NoError(t, err)
		require.LessOrEqual(t, rdb.StrLen(t.Context(), user+":60:tokens").Val(), int64(8+61*16))
	}
}
