package main

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/tiers"
)

// fixedTiers is a table that stays.
type fixedTiers struct{ table *tiers.Store }

func (f fixedTiers) Store() *tiers.Store { return f.table }

// needs are what the other settings need of every tier table that a changed file brings.
type needs struct {
	tiers  []tiers.Tier // that keys and shares of a provider's cap name
	prices bool         // there are none, so no tier can have a budget of money
}

// met returns an error that says what a table lacks.
func (n *needs) met(table *tiers.Store) error {
	known := table.Tiers()
	for _, tier := range n.tiers {
		if !slices.Contains(known, tier) {
			return fmt.Errorf("tier %q is missing, which API_KEYS or the UPSTREAM_ settings name", tier)
		}
	}
	if n.prices {
		if who, field := spends(table); field != "" {
			return fmt.Errorf("%s has %s, and without PRICES_FILE nothing is spent", who, field)
		}
	}
	return nil
}

// requestTiers are the tables of another source without any budgets but those of requests.
type requestTiers struct {
	of   ginlimit.TierSource
	last atomic.Pointer[requestTable]
}

// requestTable is a table and what is left of it.
type requestTable struct{ whole, requests *tiers.Store }

func (r *requestTiers) Store() *tiers.Store {
	whole := r.of.Store()
	last := r.last.Load()
	if last == nil || last.whole != whole {
		last = &requestTable{whole, requestsOnly(whole)}
		r.last.Store(last)
	}
	return last.requests
}

func requestsOnly(whole *tiers.Store) *tiers.Store {
	only := func(l tiers.Limits) tiers.Limits {
		return tiers.Limits{PerMinute: l.PerMinute, PerHour: l.PerHour, PerDay: l.PerDay, PerMonth: l.PerMonth}
	}
	table := map[tiers.Tier]tiers.Limits{}
	for _, tier := range whole.Tiers() {
		table[tier] = only(whole.Lookup(tier))
	}
	users := whole.Users()
	for user, o := range users.Overrides {
		o.Limits = only(o.Limits)
		users.Overrides[user] = o
	}
	requests, err := tiers.NewStore(whole.Fallback(), table)
	if err == nil {
		requests, err = requests.WithUsers(users)
	}
	if err != nil {
		panic(err) // of a part of a valid table
	}
	return requests
}
