package storetest

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
)

// entry is what one request took from one budget.
type entry struct {
	id     string
	at     int64 // Unix milliseconds
	amount int
	window time.Duration
	gone   bool // it has left its window for good, even if the clock goes back
}

// check compares a verdict with the ledger. The ledger does not include the request yet; taken says whether
// the verdict does.
func (h *usageHistory) check(t *rapid.T, c budget.Claim, v budget.Verdict, taken bool) {
	cost := costOf(c)
	if taken {
		h.checkUsed(t, c, v.Used-cost)
	} else {
		h.checkUsed(t, c, v.Used)
	}
	exact, late := h.used(c, 0)-h.blurred[c.Key], h.used(c, slack(c))
	switch {
	case c.Form() == budget.Lease:
		if c.Limit != budget.NoLimit {
			require.Equal(t, exact < c.Limit, v.Allowed, h)
		}
	case v.TooLarge:
		require.Greater(t, cost, c.Limit, h)
	case v.Allowed && cost > 0:
		require.LessOrEqual(t, exact+cost, c.Limit, "over-admitted %s\n%s", c.Key, h)
	case !v.Allowed && !h.back:
		require.Greater(t, late+cost, c.Limit, "rejected %s for nothing\n%s", c.Key, h)
		need := h.wait(c, cost)
		require.GreaterOrEqual(t, v.RetryAfter, need, h)
		require.LessOrEqual(t, v.RetryAfter, need+slack(c), h)
	}
	if !v.Allowed && !v.TooLarge {
		require.Positive(t, v.RetryAfter, h)
		require.LessOrEqual(t, v.RetryAfter, max(c.Window, budget.Busy), h)
	}
}

// checkUsed compares what a store says was used of a budget with the ledger.
func (h *usageHistory) checkUsed(t *rapid.T, c budget.Claim, used int) {
	switch {
	case c.Form() == budget.Lease:
		require.Equal(t, h.used(c, 0), used, h)
	default:
		require.GreaterOrEqual(t, used, h.used(c, 0)-h.blurred[c.Key], h)
		if !h.back {
			require.LessOrEqual(t, used, h.used(c, slack(c)), h)
		}
	}
}

// costOf is what a claim takes.
func costOf(c budget.Claim) int {
	switch c.Form() {
	case budget.Sum:
		return c.Cost
	case budget.Lease:
		return 1
	}
	return c.Entries()
}

// slack is how late a budget may be.
func slack(c budget.Claim) time.Duration {
	if c.Form() == budget.Sum {
		return c.Window / budget.Slices
	}
	return 0
}

// used is the usage of a budget by the ledger, with entries that are older than the window by up to longer.
func (h *usageHistory) used(c budget.Claim, longer time.Duration) (n int) {
	if c.Form() == budget.Lease {
		for _, end := range h.ends {
			if end > h.now {
				n++
			}
		}
		return n
	}
	for _, e := range h.ledger[c.Key] {
		if h.now-e.at < (c.Window+longer).Milliseconds() && (longer > 0 || !e.gone) {
			n += e.amount
		}
	}
	return n
}

// wait is the time, by the ledger, until there is room for the cost.
func (h *usageHistory) wait(c budget.Claim, cost int) time.Duration {
	now := h.now
	defer func() { h.now = now }()
	var exits []int64
	for _, e := range h.ledger[c.Key] {
		exits = append(exits, e.at+c.Window.Milliseconds())
	}
	slices.Sort(exits)
	for _, h.now = range exits {
		if h.now > now && h.used(c, 0)+cost <= c.Limit {
			return time.Duration(h.now-now) * time.Millisecond
		}
	}
	return 0
}

// restamp sets entries from the future to now, and marks entries that have left their window, like a store
// when it writes: that is not undone when the clock goes back.
func (h *usageHistory) restamp() {
	for _, entries := range h.ledger {
		for i := range entries {
			e := &entries[i]
			e.at = min(e.at, h.now)
			e.gone = e.gone || h.now-e.at >= e.window.Milliseconds()
		}
	}
}
