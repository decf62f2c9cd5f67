package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

func TestMain(m *testing.M) {
	quiet()
	os.Exit(m.Run())
}

// small is a run of everything that takes no time, and measures nothing.
func small(t *testing.T) options {
	return options{
		rows: everything, rounds: 1, slices: 1, duration: 5 * time.Millisecond, concurrency: 8, users: 100, growth: 10,
		ours: "../../luascripts/sliding_window.lua",
		md:   filepath.Join(t.TempDir(), "report.md"), svg: filepath.Join(t.TempDir(), "chart.svg"),
	}
}

func smallBench(t *testing.T) *bench {
	b, err := newBench(t, redistest.Start(t), small(t))
	require.NoError(t, err)
	return b
}

// Every row admits three of six calls where the limit is three.
func TestEveryRowLimits(t *testing.T) {
	b := smallBench(t)
	for _, r := range rows() {
		t.Run(r.title(), func(t *testing.T) { require.NoError(t, b.verify(t.Context(), r)) })
	}
}

// What does not limit, or limits too much, is not measured.
func TestVerifyFindsWhatDoesNotLimit(t *testing.T) {
	b := smallBench(t)
	for name, l := range map[string]limiter{
		"admits all": stub(func(int) bool { return true }, nil),
		"admits one": stub(func(call int) bool { return call == 0 }, nil),
		"fails":      stub(func(int) bool { return true }, errors.New("out of order")),
	} {
		require.Error(t, b.verify(t.Context(), row{limiter: l, windows: []window{perMinute}}), name)
	}
	for _, full := range []bool{true, false} {
		l := stub(func(int) bool { return full }, nil)
		_, err := b.measure(t.Context(), row{limiter: l, windows: []window{tight}, full: full})
		require.ErrorContains(t, err, "admitted and", "the wrong verdict while it is measured")
	}
}

func stub(allow func(call int) bool, err error) limiter {
	return limiter{name: "stub", open: func(redis.UniversalClient, []window) (decide, error) {
		var calls atomic.Int64
		return func(context.Context, string) (bool, error) {
			return allow(int(calls.Add(1)) - 1), err
		}, nil
	}}
}

// The second window costs as many round trips as the first, except where one script decides both.
func TestTwoWindowsAreTwoRoundTrips(t *testing.T) {
	b := smallBench(t)
	b.concurrency = 1
	for _, r := range rows() {
		if r.group != groupTwo || r.auto {
			continue
		}
		one := r
		one.windows = r.windows[:1]
		want := 2
		if r.limiter.name == ginlimitAtomic.name {
			want = 1
		}
		require.Equal(t, want*b.tripsOfOne(t, one), b.tripsOfOne(t, r), r.title())
	}
}

func (b *bench) tripsOfOne(t *testing.T, r row) int {
	t.Helper()
	o, err := b.open(r)
	require.NoError(t, err)
	for range 2 { // a new script is sent twice, and a new key made
		_, err = o.workers[0](t.Context(), "user")
		require.NoError(t, err)
	}
	before := b.writes.Load()
	_, err = o.workers[0](t.Context(), "user")
	require.NoError(t, err)
	return int(b.writes.Load() - before)
}

func TestReport(t *testing.T) {
	o := small(t)
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), t, o, &out, io.Discard))
	md, err := os.ReadFile(o.md)
	require.NoError(t, err)
	require.Equal(t, out.String(), string(md))
	for _, r := range rows() {
		require.Contains(t, string(md), "\n| "+r.name()+" | ")
		require.Contains(t, string(md), "\n### "+titleCase(r.group)+"\n")
	}
	_, ratios, found := strings.Cut(string(md), "### Ratios")
	require.True(t, found)
	require.Equal(t, 9, strings.Count(ratios, "\n| ")-1, "the ratios that must be shown and a bound, below their header: %s", ratios)
	require.NotContains(t, ratios, "not measured")

	svg, err := os.ReadFile(o.svg)
	require.NoError(t, err)
	require.Equal(t, len(rows()), strings.Count(string(svg), "<rect "))
	for decoder := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err = decoder.Token(); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, io.EOF, "the chart is well-formed")
}

func TestReportOfSomeRows(t *testing.T) {
	o := small(t)
	o.only, o.md, o.svg = "peers", "", ""
	o.rows = regexp.MustCompile("one window: ulule")
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), t, o, &out, io.Discard))
	require.Contains(t, out.String(), "| PING | ")
	require.Contains(t, out.String(), "| ulule/limiter | ")
	require.NotContains(t, out.String(), "| throttled | ")
	require.Contains(t, out.String(), "not measured")
}

func TestGrowthReport(t *testing.T) {
	o := small(t)
	o.only, o.svg = "growth", ""
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), t, o, &out, io.Discard))
	for _, want := range []string{"by users", "by entries", "by goroutines", "\n| 1,024, AutoPipeline | ", "\n| 5 | 328 | "} {
		require.Contains(t, out.String(), want)
	}
}
