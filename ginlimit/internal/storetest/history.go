package storetest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
)

// Subject is an empty store to compare with the model.
type Subject struct {
	budget.Store
	Clock *Clock
	Key   string // the beginning of keys that no other subject uses, in one slot
	// Look returns what the last call left under a key that it used.
	Look func(key string) Contents
	// Hold sets the TTL that a key has at the next call. It returns the TTL that it really set, long enough for
	// the call to run. nil: the store has no TTLs.
	Hold func(key string, ttl time.Duration) time.Duration
	// Check checks the store for damage after each call. nil: nothing to check.
	Check func(t require.TestingT)
}

// Contents is what is stored under a key: the log in order of time, and the bounds of its TTL, which differ
// by how far the server's clock moved during the read. No TTL: 0 and 0.
type Contents struct {
	Log          []Admission
	TTL, MostTTL time.Duration
}

// Model draws random histories: each verdict, and what is then stored, equals the model's.
//
//	go test ./ginlimit/internal/... -run Model -rapid.checks=100000 -rapid.steps=100
func Model(t *testing.T, newSubject func() Subject) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(newSubject())
		for range 3 { // times -rapid.steps: rare events need many steps, such as a repeat after its window
			t.Repeat(map[string]func(*rapid.T){"step": h.step})
		}
	})
}

// history is one run of a subject beside the model.
type history struct {
	Subject
	model    *model
	prefixes []string // of the users' keys
	members  []string // all so far
	now      int64    // ms after epoch
	lines    []string
}

func newHistory(s Subject) *history {
	return &history{Subject: s, model: newModel(), prefixes: []string{s.Key + "-1", s.Key + "-2"}}
}

// The windows of single calls, and all windows of a user.
var (
	windowSets = [][]string{
		{":60"}, {":86400"}, {":60", ":86400"}, {":60", ":images:60", ":86400", ":images:86400"}, {":1", ":60"},
	}
	lengths = map[string]time.Duration{
		":1": time.Second, ":60": budget.Minute, ":images:60": budget.Minute,
		":86400": budget.Day, ":images:86400": budget.Day,
	}
)

// step draws a step and does it on both sides. Most steps are calls, and most calls are Admit.
func (h *history) step(t *rapid.T) {
	do := rapid.SampledFrom([]string{
		"admit", "admit", "admit", "repeat", "repeat", "peek", "give back", "reset",
		"wait", "to an edge", "to an edge", "clock back",
	}).Draw(t, "do")
	switch do {
	case "wait":
		h.move(rapid.OneOf(
			rapid.SampledFrom([]int64{
				1, 999, 1_000, 1_001, 59_999, 60_000, 60_001, 86_399_999, 86_400_000, 86_400_001,
			}),
			rapid.Int64Range(1, 70_000)).Draw(t, "ms"))
		return
	case "clock back":
		h.move(-rapid.OneOf(
			rapid.SampledFrom([]int64{1, 1_000, 60_000, 3_600_000, 86_400_000}),
			rapid.Int64Range(1, 70_000)).Draw(t, "ms"))
		return
	}

	user := rapid.IntRange(0, len(h.prefixes)-1).Draw(t, "user")
	suffixes := rapid.SampledFrom(windowSets).Draw(t, "windows")
	var claims []budget.Claim
	for _, suffix := range suffixes {
		extremes := rapid.SampledFrom([]int{0, -1, math.MaxInt, math.MinInt})
		limit := rapid.OneOf(rapid.IntRange(1, 4), extremes).Draw(t, "limit")
		asked := requests(limit, lengths[suffix])
		claims = append(claims, budget.Claim{Key: h.prefixes[user] + suffix, Budget: asked})
	}

	if do == "to an edge" { // where an entry leaves its window, or one millisecond off
		var exits []int64
		for _, claim := range claims {
			for _, a := range h.model.logs[claim.Key] {
				exits = append(exits, a.At-Epoch+claim.Window.Milliseconds())
			}
		}
		if len(exits) > 0 {
			h.move(rapid.SampledFrom(exits).Draw(t, "exit") + rapid.Int64Range(-1, 1).Draw(t, "off") - h.now)
		}
		return
	}

	member := fmt.Sprint("m", len(h.members)+1)
	if len(h.members) > 0 && (do == "repeat" || do == "give back") {
		latest := h.members[len(h.members)-1]
		member = rapid.OneOf(rapid.SampledFrom(h.members), rapid.Just(latest)).Draw(t, "member")
	} else if do == "admit" || do == "repeat" {
		h.members = append(h.members, member)
	}

	ctx, now := t.Context(), Epoch+h.now
	var got, want []budget.Verdict
	var err error
	switch do {
	case "admit", "repeat":
		want = h.model.admit(now, member, claims)
		got, _, err = h.Admit(ctx, member, claims)
	case "peek":
		member = ""
		want = h.model.peek(now, claims)
		got, err = h.Peek(ctx, claims)
	case "give back":
		h.model.giveBack(now, member, claims)
		err = h.Finish(ctx, budget.Admission{ID: member, Claims: claims}, nil)
	case "reset":
		member = ""
		var keys []string
		for _, claim := range claims {
			keys = append(keys, claim.Key)
		}
		h.model.reset(keys)
		err = h.Reset(ctx, keys)
	}
	h.lines = append(h.lines, fmt.Sprintf("%12d ms  user %d  %-9s %-4s", h.now, user+1, do, member))
	for i, claim := range claims {
		h.print("  %s of %d", suffixes[i], claim.Limit)
	}
	if err != nil {
		h.fail(t, "error: %v", err)
	}
	if len(want) > 0 {
		h.print(" -> %s", text(want))
	}
	if !slices.Equal(want, got) {
		h.fail(t, "got %s, want %s", text(got), text(want))
	}
	for i, claim := range claims {
		h.compare(t, suffixes[i], claim.Key)
	}
	if h.Check != nil {
		h.Check(t)
	}
}

func (h *history) move(ms int64) {
	h.now += ms
	h.Clock.Set(h.now)
}

// compare compares what the subject stores under a key with the model.
func (h *history) compare(t *rapid.T, suffix, key string) {
	got, want := h.Look(key), slices.Clone(h.model.logs[key])
	byTime := func(a, b Admission) int {
		return cmp.Or(cmp.Compare(a.At, b.At), strings.Compare(a.ID, b.ID))
	}
	if !slices.IsSortedFunc(got.Log, func(a, b Admission) int { return cmp.Compare(a.At, b.At) }) {
		h.fail(t, "%s is out of order: %v", suffix, got.Log)
	}
	slices.SortFunc(got.Log, byTime)
	slices.SortFunc(want, byTime)
	if !slices.Equal(want, got.Log) {
		h.fail(t, "%s now holds %v, want %v", suffix, got.Log, want)
	}
	if ttl, ok := h.model.ttl[key]; ok && h.Hold != nil {
		if ttl < got.TTL || ttl > got.MostTTL {
			h.fail(t, "%s has a TTL of %v, want %v", suffix, got.MostTTL, ttl)
		}
		h.model.ttl[key] = h.Hold(key, ttl)
	}
}

func (h *history) print(format string, args ...any) {
	h.lines[len(h.lines)-1] += fmt.Sprintf(format, args...)
}

func (h *history) fail(t *rapid.T, format string, args ...any) {
	t.Helper()
	t.Fatalf("%s\n%s", strings.Join(h.lines, "\n"), fmt.Sprintf(format, args...))
}

// text writes replies as a timeline shows them.
func text(replies []budget.Verdict) string {
	words := []string{}
	for _, r := range replies {
		if r.Allowed {
			words = append(words, fmt.Sprint("in: ", r.Used))
		} else {
			words = append(words, fmt.Sprint("out: ", r.Used, ", retry after ", r.RetryAfter))
		}
	}
	return strings.Join(words, "; ")
}
