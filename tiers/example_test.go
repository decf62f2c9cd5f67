package tiers_test

import (
	"fmt"
	"strings"

	"github.com/gin-tiers/ratelimit/tiers"
)

func ExampleDefault() {
	s := tiers.Default()
	for _, t := range s.Tiers() {
		fmt.Printf("%s: %+v\n", t, s.Lookup(t))
	}
	// Output:
	// enterprise: {PerMinute:600 PerDay:100000}
	// free: {PerMinute:5 PerDay:100}
	// pro: {PerMinute:60 PerDay:5000}
}

func ExampleStore_Lookup() {
	s := tiers.Default()
	fmt.Println(s.Lookup(tiers.Pro).PerMinute)
	fmt.Println(s.Lookup("platinum").PerMinute) // unknown: the limits of the fallback
	// Output:
	// 60
	// 5
}

func ExampleNewStore() {
	s, err := tiers.NewStore("trial", map[tiers.Tier]tiers.Limits{
		"trial": {PerMinute: 2, PerDay: 20},
		"paid":  {PerMinute: 100, PerDay: 10_000},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(s.Lookup("paid").PerDay)

	_, err = tiers.NewStore("trial", map[tiers.Tier]tiers.Limits{"trial": {PerMinute: 5, PerDay: 3}})
	fmt.Println(err)
	// Output:
	// 10000
	// tiers: trial.per_day: 3 is less than per_minute 5
}

func ExampleLoad() {
	s, err := tiers.Load(strings.NewReader(`
fallback: free            # omitted = free
tiers:
  free: {per_minute: 5, per_day: 100}
  pro:  {per_minute: 60, per_day: 5000}
`))
	if err != nil {
		panic(err)
	}
	fmt.Println(s.Lookup("pro").PerDay)

	_, err = tiers.Load(strings.NewReader(`{"tiers": {"free": {"per_minute": "5", "per_day": 100}}}`))
	fmt.Println(err)
	// Output:
	// 5000
	// tiers: line 1: free.per_minute: want a whole number in decimal digits, got "5"
}
