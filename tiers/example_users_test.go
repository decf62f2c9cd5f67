package tiers_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/gin-tiers/ratelimit/tiers"
)

// A file may name single users: other limits until a moment, no limits at all, or no service.
func ExampleLoad_users() {
	s, err := tiers.Load(strings.NewReader(`
tiers:
  free: {per_minute: 5, per_day: 100}
overrides:
  alice: {per_minute: 50, per_day: 1000, until: 2026-12-31T23:59:59Z}
allow: [monitoring]
deny:  [mallory, "8421"] # an id that is a number is quoted
`))
	if err != nil {
		panic(err)
	}
	for _, day := range []string{"2026-12-31", "2027-01-01"} {
		at, _ := time.Parse(time.DateOnly, day)
		fmt.Println(day, s.LookupUser("alice", tiers.Free, at).PerMinute)
	}
	fmt.Println(s.Denies("8421"), s.Denies("alice"))

	_, err = tiers.Load(strings.NewReader(`
tiers: {free: {per_minute: 5, per_day: 100}}
allow: [mallory]
deny:  [mallory]
`))
	fmt.Println(err)
	// Output:
	// 2026-12-31 50
	// 2027-01-01 5
	// true false
	// tiers: line 4: deny: mallory is there already, in allow
}

// A program keeps its users in a database and puts them into the table.
func ExampleStore_WithUsers() {
	s, err := tiers.Default().WithUsers(tiers.Users{
		Overrides: map[string]tiers.Override{"alice": {
			Limits: tiers.Limits{PerMinute: 50, PerDay: tiers.Unlimited},
			Until:  time.Date(2026, time.December, 31, 0, 0, 0, 0, time.UTC),
		}},
		Allow: []string{"monitoring"},
		Deny:  []string{"mallory"},
	})
	if err != nil {
		panic(err)
	}
	now := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	for _, user := range []string{"alice", "bob", "monitoring"} { // -1 is tiers.Unlimited
		l := s.LookupUser(user, tiers.Free, now)
		fmt.Println(user, l.PerMinute, l.PerDay)
	}
	// Output:
	// alice 50 -1
	// bob 5 100
	// monitoring -1 -1
}
