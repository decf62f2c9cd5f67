// Command peers measures ginlimit against the limiters that its users would pick instead, on one
// private Redis: see README.md.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"regexp"
	"runtime/pprof"
	"slices"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

func main() {
	o := parseOptions(os.Args[1:])
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	quiet()

	tb := &fixture{}
	defer tb.Close()
	if o.cpuProfile != "" {
		stopProfile, err := profile(o.cpuProfile)
		if err != nil {
			tb.Fatal("peers: ", err)
		}
		tb.Cleanup(stopProfile)
	}
	if err := run(ctx, tb, o, os.Stdout, os.Stderr); err != nil {
		tb.Fatal("peers: ", err)
	}
}

// quiet silences Gin, and our warnings of go-redis's default settings, which all rows have here.
func quiet() {
	gin.SetMode(gin.ReleaseMode)
	slog.SetDefault(slog.New(slog.DiscardHandler))
}

// profile writes a CPU profile until it is stopped.
func profile(file string) (stop func(), err error) {
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		if err := f.Close(); err != nil {
			slog.Error("peers: the profile is not complete", "error", err)
		}
	}, nil
}

// run measures what the options ask for, and writes it as Markdown, to w and to the files.
func run(ctx context.Context, tb testing.TB, o options, w, progress io.Writer) error {
	srv := redistest.Start(tb)
	var report bytes.Buffer
	out := io.MultiWriter(w, &report)
	conditions, err := o.conditions(ctx, srv.Client(tb))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "`%s`, %s\n", o.command(), conditions)

	var ratios []ratio
	if o.wants("scripts") {
		shown, err := o.runScripts(ctx, tb, srv, out)
		if err != nil {
			return fmt.Errorf("scripts: %w", err)
		}
		ratios = append(ratios, shown...)
	}
	if o.wants("peers") {
		b, err := newBench(tb, srv, o)
		if err != nil {
			return err
		}
		all := pick(rows(), func(r row) bool { return r.always() || o.matches(r.title()) })
		c, err := b.compare(ctx, all, o.rounds, o.slices, progress)
		if err != nil {
			return fmt.Errorf("peers: %w", err)
		}
		c.writeTables(out)
		ratios = append(ratios, c.ratios()...)
		if o.svg != "" {
			var chart bytes.Buffer
			if err := c.writeChart(&chart, conditions); err != nil {
				return err
			}
			if err := os.WriteFile(o.svg, chart.Bytes(), 0o644); err != nil {
				return err
			}
		}
	}
	if len(ratios) > 0 {
		writeRatios(out, ratios)
	}
	if o.only == "growth" {
		if err := o.runGrowth(ctx, tb, srv, out); err != nil {
			return fmt.Errorf("growth: %w", err)
		}
	}
	if o.md != "" {
		return os.WriteFile(o.md, report.Bytes(), 0o644)
	}
	return nil
}

// pick returns what is wanted, in the same order.
func pick[T any](all []T, wanted func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(all), func(v T) bool { return !wanted(v) })
}

// matches tells whether the row or scenario of that title is asked for.
func (o options) matches(title string) bool { return o.rows.MatchString(title) }

var everything = regexp.MustCompile("")
