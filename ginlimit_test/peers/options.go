package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// options are what the command line asks for.
type options struct {
	args        []string // as given, for the report
	only        string   // "scripts", "peers", "growth", or empty: the first two
	rows        *regexp.Regexp
	rounds      int
	slices      int // of a round
	duration    time.Duration
	concurrency int
	users       int
	growth      int // most users and entries of the growth tables
	deadlines   bool
	ours        string
	scripts     []string
	md, svg     string
	cpuProfile  string
}

func parseOptions(args []string) options {
	o := options{args: args, rows: everything}
	f := flag.NewFlagSet("peers", flag.ExitOnError)
	f.StringVar(&o.only, "only", "", "measure only `PART`: scripts, peers or growth (default: scripts and peers)")
	f.Func("rows", "only rows and scenarios whose title matches `REGEXP`; the baselines are always there", func(s string) (err error) {
		o.rows, err = regexp.Compile(s)
		return err
	})
	f.IntVar(&o.rounds, "rounds", 5, "how often everything is measured")
	f.DurationVar(&o.duration, "duration", 100*time.Millisecond, "of one measurement of one row")
	f.IntVar(&o.slices, "slices", 5, "measurements of each row in a round, in turn with all others; their median is the round's value")
	f.IntVar(&o.concurrency, "concurrency", 64, "callers at a time")
	f.IntVar(&o.users, "users", 10_000, "over which the calls spread")
	f.BoolVar(&o.deadlines, "deadlines", false, "a client with ContextTimeoutEnabled for all, where ours sets a deadline for each call; ours over redisclient.AutoPipeline")
	f.IntVar(&o.growth, "growth", 100_000, "most users, and most entries of a log, of the growth tables")
	f.StringVar(&o.ours, "ours", "../../luascripts/sliding_window.lua", "the `FILE` of our script")
	f.Func("script", "a `FILE` to compare with our script, of the same contract; may be repeated", func(s string) error {
		o.scripts = append(o.scripts, s)
		return nil
	})
	f.StringVar(&o.md, "md", "", "write the report to `FILE`, too")
	f.StringVar(&o.svg, "svg", "", "draw a chart of the peers to `FILE`")
	f.StringVar(&o.cpuProfile, "cpuprofile", "", "write a CPU profile of this process to `FILE`; its label row tells the rows apart")
	quick := f.Bool("quick", false, "coarse: 2 rounds of 2 slices of 50 ms, 1,000 users")
	_ = f.Parse(args) // it exits by itself
	given := map[string]bool{}
	f.Visit(func(v *flag.Flag) { given[v.Name] = true })
	if *quick {
		o = o.coarser(given)
	}
	if err := o.check(); err != nil {
		fmt.Fprintln(f.Output(), err)
		f.Usage()
		os.Exit(2)
	}
	return o
}

// coarser makes less of what was not given.
func (o options) coarser(given map[string]bool) options {
	if !given["rounds"] {
		o.rounds = 2
	}
	if !given["slices"] {
		o.slices = 2
	}
	if !given["duration"] {
		o.duration = 50 * time.Millisecond
	}
	if !given["users"] {
		o.users = 1_000
	}
	if !given["growth"] {
		o.growth = 10_000
	}
	return o
}

func (o options) check() error {
	switch {
	case o.only != "" && o.only != "scripts" && o.only != "peers" && o.only != "growth":
		return fmt.Errorf("-only %s: want scripts, peers or growth", o.only)
	case o.rounds < 1 || o.slices < 1 || o.duration <= 0 || o.concurrency < 1 || o.growth < 10:
		return fmt.Errorf("-rounds, -slices, -duration and -concurrency are more than 0, -growth at least 10")
	case o.duration > time.Minute:
		return fmt.Errorf("-duration %v: at most a minute", o.duration)
	case o.users < 1 || o.users%stride == 0:
		return fmt.Errorf("-users %d: more than 0 and not a multiple of %d", o.users, stride)
	}
	return nil
}

func (o options) wants(part string) bool { return o.only == part || o.only == "" }

// command is how the report was made.
func (o options) command() string {
	return strings.Join(append([]string{"cd ginlimit_test/peers && go run ."}, o.args...), " ")
}

// conditions tell when, on what and under which load the report was made.
func (o options) conditions(ctx context.Context, control *redis.Client) (string, error) {
	info, err := control.InfoMap(ctx, "server").Result()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, Redis %s, %s, %d CPUs, %d callers, %s users", time.Now().UTC().Format(time.DateOnly),
		info["Server"]["redis_version"], runtime.Version(), runtime.NumCPU(), o.concurrency, thousands(float64(o.users))), nil
}

// ourScript is the script with its prelude, the clock beside it, in front.
func (o options) ourScript() (string, error) {
	clock, err := os.ReadFile(filepath.Join(filepath.Dir(o.ours), "clock.lua"))
	if err != nil {
		return "", err
	}
	script, err := os.ReadFile(o.ours)
	return string(clock) + string(script), err
}

// runScripts compares the scripts on a server.
func (o options) runScripts(ctx context.Context, tb testing.TB, srv *redistest.Server, w io.Writer) ([]ratio, error) {
	ours, err := o.ourScript()
	if err != nil {
		return nil, err
	}
	all, err := variants(ours, o.scripts)
	if err != nil {
		return nil, err
	}
	r, err := newScriptRun(ctx, srv.Addr, srv.Client(tb), all)
	if err != nil {
		return nil, err
	}
	tb.Cleanup(func() { _ = r.pump.Close() })
	return compareScripts(ctx, w, r, pick(scenarios(o.users), func(s scenario) bool { return o.matches(s.name) }), o.rounds)
}
