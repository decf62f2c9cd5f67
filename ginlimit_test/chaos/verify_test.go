package chaos

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/faulttest"
)

// result is what a run has shown, a line of the table.
type result struct {
	fault   string
	callers map[policy]string
	bound   string
	excess  map[policy]int
	passes  int           // that FailOpen let through
	warm    string        // the slowest decision
	cold    string        // the slowest on a new connection
	median  time.Duration // of decisions of an open breaker; negative where it never was
	back    time.Duration // negative where enforcement was never lost
	leaked  int
}

// slowest is the length of the longest span. One that only a machine that was too busy for its timers
// explains is marked.
func slowest(decisions []faulttest.Span) string {
	var worst time.Duration
	for _, d := range decisions {
		worst = max(worst, d.Length())
	}
	if worst > ginlimit.DefaultTimeout+faulttest.Computing {
		return fmt.Sprintf("%d ms (busy machine)", worst.Milliseconds())
	}
	return fmt.Sprintf("%d ms", worst.Milliseconds())
}

// verify asserts what is promised of every fault, and returns what was measured.
func (r *run) verify() *result {
	r.Helper()
	res := &result{fault: r.fault.name, bound: r.fault.bound.text, callers: map[policy]string{},
		excess: map[policy]int{}}
	for _, c := range r.load.all() {
		r.verifyAnswer(c)
	}
	for s, users := range r.users {
		of := closed // and of those who call all services
		if s != nil {
			of = s.policy
		}
		for _, u := range users {
			minute := r.verifyWindow(of, u, time.Minute, limits[u.tier].PerMinute)
			day := r.verifyWindow(of, u, 24*time.Hour, limits[u.tier].PerDay)
			res.excess[of] = max(res.excess[of], minute, day)
		}
	}
	r.verifyLatency(res)
	res.back = -1
	for s, back := range r.back {
		if r.load.some(func(c *call) bool { return c.service == s && !c.byRedis() && r.fault.concerns(c.user) }) {
			res.back = max(res.back, back)
			waited := faulttest.Span{Begin: r.healed, End: r.healed.Add(back)}
			allowed := r.lag.Allow(r.fault.backWithin(), waited, r.failed(s)...)
			require.LessOrEqual(r, back, allowed, "%s: Redis decides again", s.policy)
		}
	}
	for _, p := range policies {
		res.callers[p] = r.statuses(p)
	}
	for _, c := range r.during() {
		if c.service.policy == open && !c.byRedis() {
			res.passes++
		}
	}
	return res
}

// failed are the decisions for which a service asked Redis in vain after the fault.
func (r *run) failed(s *service) (failed []faulttest.Span) {
	for _, c := range r.load.all() {
		if c.service == s && !c.byRedis() && !c.breakerWasOpen() && c.back.After(r.healed) {
			failed = append(failed, c.verdict.decision)
		}
	}
	return failed
}

// betrays finds, in an answer, what only a log may tell.
var betrays = regexp.MustCompile(`(?i)redis|dial|tcp|eof|reset|broken|i/o|timeout|deadline|context|127\.` +
	`|localhost|\w:\d+|no(auth|perm|script)|readonly|wrongtype|oom|busy|clusterdown|moved|loading|breaker` +
	`|panic|goroutine|lua`)

// verifyAnswer asserts that the answer is that of a decision, or of the service's failure policy.
func (r *run) verifyAnswer(c *call) {
	r.Helper()
	about := fmt.Sprintf("%v, %v after the fault began, %s: %s", c, c.sent.Sub(r.began), c.verdict.outcome,
		c.body)
	require.NoError(r, c.err, about)
	require.NotRegexp(r, betrays, c.body, about)
	limited := len(c.header.Values(ginlimit.HeaderLimit)) == 1
	want := http.StatusServiceUnavailable
	switch {
	case r.fault.deadline > 0 && c.verdict.outcome == "":
		// Its own deadline has passed: only on a machine that had no time for it.
		require.Greater(r, r.lag.During(c.verdict.decision), faulttest.Computing, about)
	case !c.byRedis() && c.service.policy == open:
		want = http.StatusOK
		require.False(r, limited, "%s: an unlimited pass has no limit headers", about)
	case !c.byRedis() && c.service.policy == closed:
		require.False(r, limited, about)
		require.Equal(r, "1", c.header.Get(ginlimit.HeaderRetryAfter), about)
		require.Equal(r, "rate_limiter_unavailable", errorCode(c.body), about)
	default:
		require.True(r, limited, about)
		require.Equal(r, !c.byRedis(), c.verdict.local, about)
		want = http.StatusOK
		if c.verdict.outcome == ginlimit.Rejected {
			want = http.StatusTooManyRequests
			require.Contains(r, []string{"rate_limit_exceeded", "daily_limit_exceeded"}, errorCode(c.body), about)
			wait, err := strconv.Atoi(c.header.Get(ginlimit.HeaderRetryAfter))
			require.NoError(r, err, about)
			require.Positive(r, wait, about)
			longest := 60
			if c.header.Get(ginlimit.HeaderWindow) == "day" {
				longest = 86_400
			}
			require.LessOrEqual(r, wait, longest, about)
		}
	}
	require.Equal(r, want, c.status, about)
}

func errorCode(body string) string {
	var answer struct{ Error struct{ Code string } }
	_ = json.Unmarshal([]byte(body), &answer)
	return answer.Error.Code
}

// verifyWindow asserts that what was admitted stays within the limit and the bound of the fault, and returns
// by how much it was above the limit.
func (r *run) verifyWindow(of policy, u *user, window time.Duration, limit int) (excess int) {
	r.Helper()
	byRedis, byMemory := u.minute, []faulttest.Span(nil)
	if window > time.Minute {
		byRedis = u.day
	}
	byRedis = slices.Clone(byRedis)
	for _, c := range r.load.all() {
		switch {
		case c.user != u || c.verdict.outcome != ginlimit.Admitted:
		case c.byRedis():
			byRedis = append(byRedis, c.when())
		case c.verdict.local:
			byMemory = append(byMemory, c.when())
		}
	}
	bound := 0
	if r.fault.concerns(u) {
		bound = r.fault.bound.of(r, u, limit)
	}
	require.LessOrEqual(r, mostInOneWindow(byRedis, window), limit+bound, "a %s user in %v, by Redis", u.profile,
		window)
	require.LessOrEqual(r, mostInOneWindow(byMemory, window), limit, "a %s user in %v, by the memory limiter",
		u.profile, window)
	if of == local {
		byRedis = append(byRedis, byMemory...)
	}
	return max(0, mostInOneWindow(byRedis, window)-limit)
}

// verifyLatency asserts that every decision of the run kept to the limiter's timeout, and that an open
// breaker takes none.
func (r *run) verifyLatency(res *result) {
	r.Helper()
	var instant []time.Duration
	for _, c := range r.load.all() {
		d := c.verdict.decision
		require.LessOrEqual(r, d.Length(), r.lag.Allow(r.fault.decidesWithin(), d), "%v", c)
		if c.breakerWasOpen() {
			instant = append(instant, d.Length())
		}
	}
	var warm []faulttest.Span
	for _, c := range r.during() {
		warm = append(warm, c.verdict.decision)
	}
	for _, d := range r.cold {
		require.LessOrEqual(r, d.Length(), r.lag.Allow(ginlimit.DefaultTimeout, d), "on a new connection")
	}
	res.warm, res.cold = slowest(warm), slowest(r.cold)
	res.median = -1
	if len(instant) > 0 {
		slices.Sort(instant)
		res.median = instant[len(instant)/2]
	}
	if r.fault.opens {
		require.NotEmpty(r, instant, "decisions of an open breaker")
		require.Less(r, res.median, time.Millisecond, "the median of %d decisions of an open breaker", len(instant))
	}
}

// statuses are what callers of a service saw during the fault.
func (r *run) statuses(p policy) (text string) {
	counts := map[int]int{}
	for _, c := range r.during() {
		if c.service.policy == p {
			counts[c.status]++
		}
	}
	for _, status := range []int{http.StatusOK, http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		if counts[status] > 0 {
			text += fmt.Sprintf(", %d × %d", counts[status], status)
		}
	}
	if text == "" {
		return "-"
	}
	return text[2:]
}
