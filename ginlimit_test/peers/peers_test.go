package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

func TestMain(m *testing.M) {
	quiet()
	os.Exit(m.Run())
}

// small is a run of everything that takes no time, and measures nothing.
func small(t *testing.T, args ...string) options {
	o, err := parse(append([]string{"-rounds", "1", "-slices", "1", "-duration", "5ms", "-concurrency", "8",
		"-users", "100", "-growth", "10"}, args...))
	require.NoError(t, err)
	return o
}

func reported(t *testing.T, args ...string) string {
	var out bytes.Buffer
	require.NoError(t, report(t.Context(), t, small(t, args...), &out, io.Discard))
	return out.String()
}

func smallBench(t *testing.T) *bench {
	b, err := newBench(t, redistest.Start(t), small(t))
	require.NoError(t, err)
	return b
}

// What does not limit, or limits too much, is not measured.
func TestVerifyFindsWhatDoesNotLimit(t *testing.T) {
	b := smallBench(t)
	stub := func(allow func(call int64) bool, err error) limiter {
		return limiter{one: func(redis.UniversalClient, window) decide {
			var calls atomic.Int64
			return func(context.Context, string) (verdict, error) {
				return verdict{allowed: allow(calls.Add(1))}, err
			}
		}}
	}
	for name, l := range map[string]limiter{
		"admits all": stub(func(int64) bool { return true }, nil),
		"admits one": stub(func(call int64) bool { return call == 1 }, nil),
		"fails":      stub(func(int64) bool { return true }, errors.New("out of order")),
	} {
		require.Error(t, b.verify(t.Context(), row{limiter: l, windows: []window{perMinute}}), name)
	}
	for _, full := range []bool{true, false} {
		l := stub(func(int64) bool { return full }, nil)
		_, err := b.measure(t.Context(), row{limiter: l, windows: []window{tight}, full: full})
		require.ErrorContains(t, err, "allowed", "the wrong verdict while it is measured")
	}
}

// Every row limits, or the run would end.
func TestReport(t *testing.T) {
	md := reported(t)
	for _, part := range []string{"scripts", "peers"} {
		all, _, err := rows(part, options{})
		require.NoError(t, err)
		for _, r := range all {
			require.Contains(t, md, "\n| "+r.name()+" | ")
			require.Contains(t, md, "\n### "+r.group+"\n")
		}
	}
	_, ratios, found := strings.Cut(md, "### Ratios")
	require.True(t, found)
	require.Equal(t, 2+2*9, strings.Count(ratios, "\n| ")-1, "those to be shown, below their header: %s", ratios)
	require.NotContains(t, ratios, "not measured")
}

func TestReportOfSomeRows(t *testing.T) {
	md := reported(t, "-only", "peers", "-rows", "One window: ulule")
	require.Contains(t, md, "| PING | ")
	require.Contains(t, md, "| ulule/limiter | ")
	require.NotContains(t, md, "| throttled | ")
	require.Contains(t, md, "not measured")
}

func TestGrowthReport(t *testing.T) {
	md := reported(t, "-only", "growth")
	for _, want := range []string{"by users", "by entries", "by goroutines", "\n| 10 | ",
		"\n| 5 | 328 | "} {
		require.Contains(t, md, want)
	}
}

func TestBadOptions(t *testing.T) {
	for _, args := range []string{"-only nothing", "-rounds 0", "-users 7919", "-rows ("} {
		_, err := parse(strings.Fields(args))
		require.Error(t, err, args)
	}
}
