package tiers_test

import (
	"fmt"
	"strings"

	"github.com/gin-tiers/ratelimit/tiers"
)

func ExampleDefault() {
	s := tiers.Default()
	for _, t := range s.Tiers() {
		l := s.Lookup(t)
		fmt.Printf("%s: %d a minute, %d a day\n", t, l.PerMinute, l.PerDay)
	}
	// Output:
	// enterprise: 600 a minute, 100000 a day
	// free: 5 a minute, 100 a day
	// pro: 60 a minute, 5000 a day
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

func ExampleMoney() {
	fmt.Println(tiers.Money(2_500_000), tiers.Money(125))
	// Output: 2.50 0.000125
}

func ExampleLoad() {
	s, err := tiers.Load(strings.NewReader(`
fallback: free            # omitted = free
tiers:
  free: {per_minute: 5, per_day: 100}
  pro:  {per_minute: 60, per_day: unlimited, per_month: 50000, spend_per_month: 2.50}
`))
	if err != nil {
		panic(err)
	}
	pro := s.Lookup("pro")
	fmt.Println(pro.PerMonth, pro.SpendPerMonth, pro.PerDay == tiers.Unlimited)

	_, err = tiers.Load(strings.NewReader(`{"tiers": {"free": {"per_minute": "5", "per_day": 100}}}`))
	fmt.Println(err)
	// Output:
	// 50000 2.50 true
	// tiers: line 1: free.per_minute: want a whole number in decimal digits or unlimited, got "5"
}
