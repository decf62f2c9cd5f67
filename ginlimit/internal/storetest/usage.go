package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
)

// Usage draws random histories: admissions on budgets of all forms, settling, refunds, repeats, renewals,
// changed limits, idle times and, in every second history, clocks that go back. It compares them with a list
// of all that was taken. Logs and leases equal the list. A sum never admits what the list would not; while
// the clock goes forward, it is late by at most a slice.
func Usage(t *testing.T, newSubject func() Subject) {
	rapid.Check(t, func(t *rapid.T) {
		h := &usageHistory{Subject: newSubject(), ledger: map[string][]entry{}, ends: map[string]int64{},
			renewed: map[string]bool{}, at: map[string]int64{}, blurred: map[string]int{},
			forward: rapid.Bool().Draw(t, "forward")}
		for range 3 {
			t.Repeat(map[string]func(*rapid.T){"step": h.step})
		}
	})
}

type usageHistory struct {
	Subject
	ledger map[string][]entry // by suffix
	ends   map[string]int64   // of leases, by id
	open   []budget.Admission // not finished
	now    int64              // Unix milliseconds
	ids    int
	lines  []string

	renewed map[string]bool // leases whose end does not belong to the time of admission, by id
	forward bool            // the clock never goes back
	back    bool            // the clock has gone back

	at      map[string]int64 // when requests were admitted, by id
	blurred map[string]int   // by suffix, what may have gone back to the slice of others after a clock step
}

func (h *usageHistory) step(t *rapid.T) {
	if h.now == 0 {
		h.now = Epoch
	}
	do := rapid.SampledFrom([]string{
		"admit", "admit", "admit", "admit", "repeat", "settle", "settle", "settle", "refund", "renew", "peek",
		"wait", "wait", "clock back",
	}).Draw(t, "do")
	if len(h.open) == 0 && slices.Contains([]string{"repeat", "settle", "refund", "renew"}, do) {
		do = "admit"
	}
	switch do {
	case "wait":
		h.move(rapid.OneOf(rapid.Int64Range(1, 3_000), rapid.SampledFrom(
			[]int64{14_999, 15_000, 60_000, 60_999, 61_000, 315_001, 86_400_000, 86_400_000 * 61 / 60})).Draw(t, "ms"))
	case "clock back":
		if h.forward {
			return
		}
		h.back = true
		h.move(-rapid.SampledFrom([]int64{1, 1_500, 70_000, 3_600_000}).Draw(t, "ms"))
	case "admit":
		h.ids++
		h.admit(t, fmt.Sprint("r", h.ids), h.claims(t))
	case "repeat":
		a := rapid.SampledFrom(h.open).Draw(t, "request")
		if _, known := h.ends[a.ID]; known { // a repeat comes within seconds
			h.admit(t, a.ID, a.Claims)
		}
	case "settle", "refund":
		i := rapid.IntRange(0, len(h.open)-1).Draw(t, "request")
		var used []int
		for _, c := range h.open[i].Claims {
			stays := c.Entries()
			if c.Form() == budget.Sum {
				stays = rapid.IntRange(0, 2*c.Cost).Draw(t, "used")
			}
			used = append(used, stays)
		}
		if do == "refund" {
			used = nil
		}
		a := h.open[i]
		if !h.renewed[a.ID] && rapid.Bool().Draw(t, "the reply got lost") {
			a.At = 0
		}
		h.finish(t, a, used)
		h.finish(t, a, nil) // does nothing
		h.open = slices.Delete(h.open, i, i+1)
	case "renew":
		var held []budget.Held
		for _, a := range h.open {
			held = append(held, budget.Held{Key: a.Claims[len(a.Claims)-1].Key, ID: a.ID})
			if _, known := h.ends[a.ID]; known {
				h.ends[a.ID], h.renewed[a.ID] = h.now+budget.LeaseTime.Milliseconds(), true
			}
		}
		h.note("renew")
		require.NoError(t, h.Renew(t.Context(), held))
	case "peek":
		claims := h.claims(t)
		h.note("peek")
		verdicts, err := h.Peek(t.Context(), claims)
		require.NoError(t, err)
		for i, c := range claims {
			c.Cost = 1
			h.check(t, c, verdicts[i], false)
		}
	}
}

// claims are two windows of requests, two of tokens and the leases, with the present limits.
func (h *usageHistory) claims(t *rapid.T) (claims []budget.Claim) {
	add := func(suffix string, d budget.Dimension, limits ...int) {
		limit := rapid.SampledFrom(limits).Draw(t, "limit of "+suffix)
		c := budget.Claim{Key: h.Key + suffix, Budget: budget.Budget{Dimension: d, Limit: limit}}
		if d.Form() == budget.Log {
			c.Cost = rapid.SampledFrom([]int{0, 1, 1, 2, 4}).Draw(t, "weight")
		}
		if d.Form() == budget.Sum {
			c.Cost = 1
			if d.Unit == budget.Tokens {
				c.Cost = rapid.SampledFrom([]int{0, 1, 7, 20, 60, 150}).Draw(t, "cost")
			}
		}
		claims = append(claims, c)
	}
	add(":60", budget.Dimension{Window: budget.Minute}, 3, 5, 100)
	add(":86400:requests", budget.Dimension{Window: budget.Day, Bounded: true}, 8, 20, 1000)
	add(":60:tokens", budget.Dimension{Window: budget.Minute, Unit: budget.Tokens}, 100, 140, 1000)
	add(":86400:tokens", budget.Dimension{Window: budget.Day, Unit: budget.Tokens}, 200, 500, 1<<50)
	add(":leases", budget.Dimension{Unit: budget.Concurrent}, 1, 3, budget.NoLimit)
	return claims
}

func (h *usageHistory) admit(t *rapid.T, id string, claims []budget.Claim) {
	_, repeated := h.ends[id]
	h.note("admit %s", id)
	verdicts, at, err := h.Admit(t.Context(), id, claims)
	require.NoError(t, err)
	h.line(" -> %+v", verdicts)
	h.restamp()
	last := len(verdicts) - 1
	if repeated {
		require.True(t, verdicts[last].Allowed, h)
		require.Len(t, verdicts, len(claims), h)
		require.Equal(t, h.ends[id]-budget.LeaseTime.Milliseconds(), at, h)
		for i, v := range verdicts {
			require.Zero(t, v.RetryAfter, h)
			h.checkUsed(t, claims[i], v.Used)
		}
		return
	}
	for i, v := range verdicts {
		require.Equal(t, v.Allowed || i < last, v.Allowed, h)
		if claims[i].Form() == budget.Sum {
			require.Equal(t, claims[i].Cost > claims[i].Limit, v.TooLarge, h)
		}
		h.check(t, claims[i], v, verdicts[last].Allowed)
	}
	if !verdicts[last].Allowed {
		if claims[last].Form() == budget.Lease { // none from the future is left
			for id, end := range h.ends {
				if most := h.now + budget.LeaseTime.Milliseconds(); end > most {
					h.ends[id], h.renewed[id] = most, true
				}
			}
		}
		return
	}
	require.Len(t, verdicts, len(claims), h)
	require.Equal(t, h.now, at, h)
	for id, end := range h.ends {
		if end <= h.now-budget.Forget.Milliseconds() {
			delete(h.ends, id)
		}
	}
	h.ends[id], h.at[id] = h.now+budget.LeaseTime.Milliseconds(), h.now
	for _, c := range claims {
		amount := costOf(c)
		h.ledger[c.Key] = append(h.ledger[c.Key], entry{id, h.now, amount, c.Window, false})
	}
	h.open = append(h.open, budget.Admission{ID: id, At: at, Claims: claims})
}

func (h *usageHistory) finish(t *rapid.T, a budget.Admission, used []int) {
	h.note("finish %s with %v", a.ID, used)
	require.NoError(t, h.Finish(t.Context(), a, used))
	if _, known := h.ends[a.ID]; !known {
		return
	}
	h.restamp()
	delete(h.ends, a.ID)
	for i, c := range a.Claims {
		stays := 0
		if used != nil {
			stays = used[i]
		}
		if c.Form() == budget.Sum && stays > c.Cost {
			h.ledger[c.Key] = append(h.ledger[c.Key], entry{a.ID, h.now, stays - c.Cost, c.Window, false})
			continue
		}
		for j := range h.ledger[c.Key] {
			if e := &h.ledger[c.Key][j]; e.id == a.ID {
				if c.Form() == budget.Sum && e.at < h.at[a.ID] { // restamped: others may be in its slice now
					h.blurred[c.Key] += e.amount - stays
				}
				e.amount = stays
			}
		}
	}
}

func (h *usageHistory) move(ms int64) {
	h.now += ms
	h.Clock.Set(h.now - Epoch)
	h.note("move %d ms", ms)
}

func (h *usageHistory) note(format string, args ...any) {
	h.lines = append(h.lines, fmt.Sprintf("%14d ", h.now-Epoch)+fmt.Sprintf(format, args...))
}

func (h *usageHistory) line(format string, args ...any) {
	h.lines[len(h.lines)-1] += fmt.Sprintf(format, args...)
}

func (h *usageHistory) String() string { return strings.Join(h.lines, "\n") }
