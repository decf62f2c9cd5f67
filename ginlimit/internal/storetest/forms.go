package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
)

// conformLeases runs timelines of requests in progress; the limit is one.
func conformLeases(t *testing.T, s budget.Store, c *Clock) {
	const admit, renew, finish = "admit", "renew", "finish"
	lease, grace := budget.LeaseTime.Milliseconds(), budget.Forget.Milliseconds()
	const hour = int64(3_600_000)
	type row struct {
		at   int64 // ms
		do   string
		id   string
		want bool
	}
	for name, rows := range map[string][]row{
		"a lease ends": {
			{0, admit, "a", true}, {0, admit, "b", false}, {lease - 1, admit, "b", false}, {lease, admit, "b", true},
		},
		"a lease that is renewed lasts": {
			{0, admit, "a", true}, {10_000, renew, "a", true}, {20_000, renew, "a", true},
			{20_000 + lease - 1, admit, "b", false}, {20_000 + lease, admit, "b", true},
		},
		"one that was finished is not renewed": {
			{0, admit, "a", true}, {0, finish, "a", true}, {0, renew, "a", true}, {0, admit, "b", true},
		},
		"one that ran out is renewed": {
			{0, admit, "a", true}, {2 * lease, renew, "a", true}, {3*lease - 1, admit, "b", false},
		},
		"one that nobody has is not": {
			{0, admit, "a", true}, {0, renew, "b", true}, {lease, admit, "c", true},
		},
		"one that is forgotten is not, and is no repeat": {
			{0, admit, "a", true}, {lease + grace, admit, "b", true}, {lease + grace, renew, "a", true},
			{lease + grace, admit, "a", false}, {lease + grace, finish, "b", true}, {lease + grace, admit, "a", true},
		},
		"a repeat is admitted, also when its lease has ended": {
			{0, admit, "a", true}, {0, admit, "a", true}, {lease, admit, "b", true}, {lease + grace - 1, admit, "a",
				true},
		},
		// A holder that died before the clock went back holds its slot no longer than any other. R40.
		"a clock an hour ahead that came back": {
			{hour, admit, "a", true}, {0, admit, "b", false}, {lease - 1, admit, "b", false}, {lease, admit, "b",
				true},
		},
		"a clock that came back under a renewed lease": {
			{hour, admit, "a", true}, {0, renew, "a", true}, {lease - 1, admit, "b", false}, {lease, admit, "b", true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			key := newKey(t) + ":leases"
			claims := []budget.Claim{{Key: key, Budget: budget.Budget{
				Dimension: budget.Dimension{Unit: budget.Concurrent}, Limit: 1}}}
			for i, r := range rows {
				c.Set(r.at)
				step := fmt.Sprintf("step %d: %s %s at %d ms", i, r.do, r.id, r.at)
				switch r.do {
				case admit:
					verdicts, _, err := s.Admit(t.Context(), r.id, claims)
					require.NoError(t, err, step)
					require.Equal(t, r.want, verdicts[0].Allowed, step)
					if !r.want {
						require.Equal(t, budget.Verdict{Used: 1, RetryAfter: budget.Busy}, verdicts[0], step)
					}
				case renew:
					require.NoError(t, s.Renew(t.Context(), []budget.Held{{Key: key, ID: r.id}}), step)
				case finish:
					require.NoError(
						t,
						s.Finish(t.Context(), budget.Admission{ID: r.id, At: Epoch + r.at, Claims: claims}, nil),
						step,
					)
				}
			}
		})
	}
}

// conformRepeats admits requests twice. A lease remembers them, or, without a lease, a log.
func conformRepeats(t *testing.T, s budget.Store, c *Clock) {
	c.Set(0)
	for name, lease := range map[string]bool{"by a lease": true, "by a log": false} {
		t.Run(name, func(t *testing.T) {
			user := newKey(t)
			claims := []budget.Claim{
				{Key: user + ":60", Budget: requests(2, budget.Minute)},
				{Key: user + ":86400:requests", Cost: 1, Budget: budget.Budget{
					Dimension: budget.Dimension{Window: budget.Day, Bounded: true}, Limit: 2}},
			}
			if lease {
				for _, scope := range []string{":leases", ":images:leases"} {
					claims = append(claims, budget.Claim{Key: user + scope, Budget: budget.Budget{
						Dimension: budget.Dimension{Unit: budget.Concurrent}, Limit: 2}})
				}
			}
			for i, id := range []string{"a", "a", "b", "a", "b"} {
				verdicts, _, err := s.Admit(t.Context(), id, claims)
				require.NoError(t, err)
				require.Len(t, verdicts, len(claims))
				for _, v := range verdicts {
					require.Equal(t, budget.Verdict{Allowed: true, Used: 1 + i/2 - i/4}, v, "call %d", i+1)
				}
			}
			verdicts, at, err := s.Admit(t.Context(), "c", claims)
			require.NoError(t, err)
			require.Equal(t, []budget.Verdict{{Used: 2, RetryAfter: time.Minute}}, verdicts)
			for range 2 {
				require.NoError(t, s.Finish(t.Context(), budget.Admission{ID: "a", At: at, Claims: claims}, nil))
				verdicts, err = s.Peek(t.Context(), claims)
				require.NoError(t, err)
				for _, v := range verdicts {
					require.Equal(t, budget.Verdict{Allowed: true, Used: 1}, v, "given back once")
				}
			}
		})
	}
}

// conformSums runs timelines of tokens per minute; the limit is 100, and a slice is a second.
func conformSums(t *testing.T, s budget.Store, c *Clock) {
	const admit, settle = "admit", "settle"
	const huge = 1 << 53
	type row struct {
		at     int64 // ms
		do     string
		id     string
		amount int // to take, or used
		want   budget.Verdict
	}
	ok := func(used int) budget.Verdict { return budget.Verdict{Allowed: true, Used: used} }
	full := func(used int, retry time.Duration) budget.Verdict {
		return budget.Verdict{Used: used, RetryAfter: retry * time.Millisecond}
	}
	for name, rows := range map[string][]row{
		"what was reserved leaves a window after its slice's last": {
			{0, admit, "a", 60, ok(60)}, {500, admit, "b", 30, ok(90)}, {60_000, admit, "c", 60, full(90, 500)},
			{60_499, admit, "c", 60, full(90, 1)}, {60_500, admit, "c", 60, ok(60)},
		},
		"what was not used comes back to its slice": {
			{0, admit, "a", 60, ok(60)}, {30_000, admit, "b", 40, ok(100)}, {40_000, settle, "a", 10, ok(50)},
			{40_000, settle, "a", 0, ok(50)}, {60_000, admit, "c", 60, ok(100)},
		},
		"two slices leave one after the other": {
			{0, admit, "a", 60, ok(60)}, {1_000, admit, "b", 40, ok(100)}, {59_999, admit, "c", 60, full(100, 1)},
			{60_000, admit, "c", 60, ok(100)}, {60_000, admit, "d", 60, full(100, 60_000)}, {61_000, admit, "d", 40,
				ok(100)},
		},
		"what takes nothing is admitted, whatever is used": {
			{0, admit, "a", 100, ok(100)}, {0, admit, "b", 0, ok(100)}, {0, settle, "a", 200, ok(200)},
			{0, admit, "c", 0, ok(200)}, {0, admit, "d", 1, full(200, 60_000)},
		},
		"what slid out is not given back": {
			{0, admit, "a", 60, ok(60)}, {60_000, admit, "b", 60, ok(60)}, {60_000, settle, "a", 0, ok(60)},
		},
		"more than was reserved is taken when it is settled": {
			{0, admit, "a", 60, ok(60)}, {30_000, settle, "a", 150, ok(150)}, {59_999, admit, "b", 10, full(150, 1)},
			{60_000, admit, "b", 10, ok(100)}, {60_000, admit, "c", 10, full(100, 30_000)},
		},
		"a debt is paid by the window, not by what comes back": {
			{0, admit, "a", 50, ok(50)}, {0, admit, "b", 50, ok(100)}, {1_000, settle, "a", 300, ok(350)},
			{2_000, settle, "b", 0, ok(300)}, {2_000, admit, "c", 1, full(300, 59_000)},
		},
		"a request larger than the budget": {
			{0, admit, "a", 101, budget.Verdict{TooLarge: true}}, {0, admit, "b", 100, ok(100)},
			{0, admit, "c", 101, budget.Verdict{Used: 100, TooLarge: true}},
		},
		// R40. Amounts from the future count as taken now, once.
		"a clock an hour ahead that came back": {
			{3_600_000, admit, "a", 60, ok(60)}, {0, admit, "b", 60, full(60, 60_000)}, {1_000, admit, "b", 60,
				full(60, 59_000)},
			{1_000, settle, "a", 0, ok(60)}, {60_000, admit, "c", 100, ok(100)},
		},
		"no more comes back than the slice holds": {
			{20_000, admit, "a", 60, ok(60)}, {10_000, admit, "b", 10, ok(70)}, {20_000, admit, "c", 10, ok(80)},
			{20_000, settle, "a", 0, ok(70)},
		},
		"amounts that no number counts to the unit": {
			{0, admit, "a", 1, ok(1)}, {0, admit, "b", 1, ok(2)}, {1_000, settle, "a", huge, ok(huge + 1)},
			{2_000, settle, "b", 3, ok(huge + 3)}, {60_000, admit, "c", 1, full(huge+1, 1_000)},
			{62_000, admit, "c", 100, ok(100)}, {62_000, admit, "d", 1, full(100, 60_000)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			user := newKey(t)
			claims := func(cost int) []budget.Claim {
				return []budget.Claim{
					{Key: user + ":60:tokens", Cost: cost, Budget: budget.Budget{
						Dimension: budget.Dimension{Window: budget.Minute, Unit: budget.Tokens}, Limit: 100}},
					{Key: user + ":leases", Budget: budget.Budget{
						Dimension: budget.Dimension{Unit: budget.Concurrent}, Limit: budget.NoLimit}},
				}
			}
			open := map[string]budget.Admission{}
			for i, r := range rows {
				c.Set(r.at)
				step := fmt.Sprintf("step %d: %s %s of %d at %d ms", i, r.do, r.id, r.amount, r.at)
				if r.do == admit {
					verdicts, at, err := s.Admit(t.Context(), r.id, claims(r.amount))
					require.NoError(t, err, step)
					require.Equal(t, about(r.want), about(verdicts[0]), step)
					open[r.id] = budget.Admission{ID: r.id, At: at, Claims: claims(r.amount)}
					continue
				}
				require.NoError(t, s.Finish(t.Context(), open[r.id], []int{r.amount, 0}), step)
				verdicts, err := s.Peek(t.Context(), claims(0))
				require.NoError(t, err, step)
				require.Equal(t, about(r.want).Used, about(verdicts[0]).Used, step)
			}
		})
	}
}

// about is a verdict without the last bits of a number that a store does not count exactly.
func about(v budget.Verdict) budget.Verdict {
	if v.Used >= 1<<53 {
		v.Used = 1 << 53
	}
	return v
}
