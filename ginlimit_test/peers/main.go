// Command peers measures ginlimit against the limiters that its users would pick instead, on one private
// Redis: see README.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// options are what the command line asks for.
type options struct {
	only        string
	rows        *regexp.Regexp
	rounds      int
	slices      int
	duration    time.Duration
	concurrency int
	users       int
	growth      int
	scripts     []string
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("peers", flag.ExitOnError)
	f.StringVar(&o.only, "only", "",
		"measure only `PART`: scripts, peers or growth (default: scripts and peers)")
	rows := f.String("rows", "",
		"only rows and scenarios whose title matches `REGEXP`; the baselines are always there")
	f.IntVar(&o.rounds, "rounds", 5, "how often everything is measured")
	f.IntVar(&o.slices, "slices", 5,
		"measurements of each row in a round, in turn with all others; the median counts")
	f.DurationVar(&o.duration, "duration", 100*time.Millisecond,
		"of one measurement of one row, at most a minute")
	f.IntVar(&o.concurrency, "concurrency", 64, "callers at a time")
	f.IntVar(&o.users, "users", 10_000, "over which the calls spread")
	f.IntVar(&o.growth, "growth", 100_000, "most users, and most entries of a log, of the growth tables")
	f.Func("script", "a `FILE` to compare with sliding_window.lua, of the same contract; may be repeated",
		func(s string) error {
			o.scripts = append(o.scripts, s)
			return nil
		})
	_ = f.Parse(args) // it exits by itself
	switch {
	case !slices.Contains([]string{"", "scripts", "peers", "growth"}, o.only):
		return o, fmt.Errorf("-only %s: want scripts, peers or growth", o.only)
	case o.rounds < 1 || o.slices < 1 || o.concurrency < 1 || o.growth < 10 || o.duration <= 0 ||
		o.duration > time.Minute:
		return o, fmt.Errorf("-rounds, -slices, -concurrency and -duration are more than 0, -growth at least 10")
	case o.users < 1 || o.users%stride == 0:
		return o, fmt.Errorf("-users %d: more than 0 and not a multiple of %d", o.users, stride)
	}
	o.rows, err = regexp.Compile(*rows)
	return o, err
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	quiet()
	tb := &fixture{}
	defer tb.Close()
	o, err := parse(os.Args[1:])
	if err == nil {
		err = report(ctx, tb, o, os.Stdout, os.Stderr)
	}
	if err != nil {
		tb.Fatalf("peers: %v", err)
	}
}

// quiet silences Gin, and our warnings of go-redis's default settings, which all rows have here.
func quiet() {
	gin.SetMode(gin.ReleaseMode)
	slog.SetDefault(slog.New(slog.DiscardHandler))
}

// report measures what the options ask for, and writes it as Markdown.
func report(ctx context.Context, tb testing.TB, o options, w, progress io.Writer) error {
	b, err := newBench(tb, redistest.Start(tb), o)
	if err != nil {
		return err
	}
	info, err := b.control.InfoMap(ctx, "server").Result()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "`%s`,\n%s, Redis %s, %s, %d CPUs, %d callers, %s users\n",
		strings.Join(append([]string{"cd ginlimit_test/peers && go run ."}, os.Args[1:]...), " "),
		time.Now().UTC().Format(time.DateOnly), info["Server"]["redis_version"], runtime.Version(),
		runtime.NumCPU(), o.concurrency, number(float64(o.users), 0))

	var ratios []ratio
	for _, part := range []string{"scripts", "peers", "growth"} {
		if o.only != part && (o.only != "" || part == "growth") {
			continue
		}
		c, err := b.compare(ctx, part, progress)
		if err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
		c.writeTables(w)
		switch part {
		case "scripts":
			ratios = c.scriptRatios()
		case "peers":
			ratios = append(ratios, c.ratios()...)
		case "growth":
			return b.writeMemory(ctx, w)
		}
	}
	writeRatios(w, ratios)
	return nil
}
