package chaos

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/gin-tiers/ratelimit/ginlimit_test/faulttest"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

var tableFile = flag.String("table", "", "write the table to this file, too")

func TestMain(m *testing.M) {
	flag.Parse()
	gin.SetMode(gin.ReleaseMode)
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil))) // faults fill logs
	redis.SetLogger(silence{})
	os.Exit(m.Run())
}

// silence is a logger of go-redis.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

func TestChaos(t *testing.T) {
	lag := faulttest.MeasureLag(t)
	var cluster *redistest.Cluster
	var results []*result
	for _, f := range faults {
		var res *result
		t.Run(f.name, func(sub *testing.T) {
			if f.clusters && cluster == nil {
				cluster = redistest.StartCluster(t, 3, 1) // for all of them
			}
			before := goleak.IgnoreCurrent()
			sub.Cleanup(func() { // registered first, it runs when all else is gone
				leaked := leaks(before)
				if res != nil {
					res.leaked = len(leaked)
				}
				require.Empty(sub, leaked, "goroutines that are left")
			})
			r := &run{T: sub, fault: f, lag: lag, cluster: cluster}
			f.inject(r)
			res = r.verify()
			if f.verify != nil {
				f.verify(r)
			}
		})
		if res != nil {
			results = append(results, res)
		}
	}
	table := markdown(results)
	fmt.Println(table)
	if *tableFile != "" {
		require.NoError(t, os.WriteFile(*tableFile, []byte(table), 0o644))
	}
}

// leaks are the goroutines that began since before and do not end, each with its stack. A server that the run
// restarted has one for its process, which ends with the test.
func leaks(before goleak.Option) []string {
	var err error
	for begin := time.Now(); time.Since(begin) < 5*time.Second; {
		err = goleak.Find(before,
			goleak.IgnoreAnyFunction("github.com/gin-tiers/ratelimit/ginlimit_test/redistest.startProcess.func1"))
		if err == nil {
			return nil
		}
	}
	return strings.Split(err.Error(), "\n\n")
}

// markdown is the table, with what it needs to be understood.
func markdown(results []*result) string {
	var b strings.Builder
	columns := []string{"fault", "callers of FailClosed", "of FailOpen", "of FailLocal",
		"admitted above the limit, at most",
		"measured: closed, open, local", "slowest decision: warm, cold connection", "median, breaker open",
		"enforcing again after", "goroutines left"}
	fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for _, r := range results {
		median, back, unlimited := "never open", "never lost", ""
		if r.median >= 0 {
			median = fmt.Sprintf("%d µs", r.median.Microseconds())
		}
		if r.back >= 0 {
			back = fmt.Sprintf("%.2f s", r.back.Seconds())
		}
		if r.passes > 0 {
			unlimited = fmt.Sprintf(" (%d unlimited)", r.passes)
		}
		fmt.Fprintf(&b, "| %s | %s | %s%s | %s | %s | %d, %d, %d | %s, %s | %s | %s | %d |\n",
			r.fault, r.callers[closed], r.callers[open], unlimited, r.callers[local], r.bound,
			r.excess[closed], r.excess[open], r.excess[local], r.warm, r.cold, median, back, r.leaked)
	}
	fmt.Fprintf(&b, `
Callers: answers during the fault. Above the limit: the most that any user was admitted in any true window,
less the limit, which is %d a minute for most. FailOpen's unlimited passes are not in it; FailLocal's memory
limiter counts for itself, so it may add the limit once more. The server's clock cannot be moved here: the
rows on clock steps use WithClock, which is not the default. Measured on %s with %s and go-redis %s, on %d
CPUs which the Redis servers and the callers share.
`, limit, redisVersion(), runtime.Version(), redis.Version(), runtime.NumCPU())
	return b.String()
}

func redisVersion() string {
	out, _ := exec.Command("redis-server", "--version").Output()
	for _, field := range strings.Fields(string(out)) {
		if v, ok := strings.CutPrefix(field, "v="); ok {
			return "Redis " + v
		}
	}
	return "Redis"
}
