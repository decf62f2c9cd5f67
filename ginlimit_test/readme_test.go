package ginlimit_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/openai"
	"github.com/gin-tiers/ratelimit/ginlimit/prom"
	"github.com/gin-tiers/ratelimit/ginlimit/redisclient"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/tiers"
)

// page is the text of a page, by its path in the repository.
func page(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile("../" + path)
	require.NoError(t, err)
	return string(text)
}

func readme(t *testing.T) string {
	t.Helper()
	return page(t, "README.md")
}

func blocks(text, language string) (blocks []string) {
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)\n```").FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

func withoutIndent(source string) string {
	return regexp.MustCompile(`(?m)^\t+`).ReplaceAllString(source, "")
}

func TestReadmeIsShort(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(readme(t), "\n"), "\n")
	require.LessOrEqual(t, len(lines), 150)
	for _, line := range lines {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 110, line)
	}
}

func TestReadmeOpensWithTheTwoCommands(t *testing.T) {
	opening := blocks(readme(t), "sh")[0]
	require.Contains(t, opening, "go run ./example_app")
	require.Contains(t, opening, "go test ./... -count=1", "the cache would keep skips")
}

// Every link of the README and of the pages below docs leads to a file, and every page is linked.
func TestReadmeLinks(t *testing.T) {
	pages, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, p := range pages {
		require.Contains(t, readme(t), "(docs/"+filepath.Base(p)+")")
	}
	link := regexp.MustCompile(`\]\(([^)#]+)(#[^)]*)?\)`)
	for _, p := range append(pages, "../README.md") {
		text, err := os.ReadFile(p)
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(m[1], "://") {
				_, err := os.Stat(filepath.Join(filepath.Dir(p), m[1]))
				require.NoError(t, err, p)
			}
		}
	}
}

// docs/options.md names every option that there is.
func TestReadmeNamesEveryOption(t *testing.T) {
	text, err := os.ReadFile("../docs/options.md")
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), "go", "doc", "-short",
		"github.com/gin-tiers/ratelimit/ginlimit").Output()
	require.NoError(t, err)
	options := regexp.MustCompile(`func (With\w+)\(`).FindAllStringSubmatch(string(out), -1)
	require.NotEmpty(t, options)
	for _, option := range options {
		require.Contains(t, string(text), "`"+option[1]+"(")
	}
}

func TestReadmeNamesEveryBudget(t *testing.T) {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[tiers.Limits]()) {
		name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		require.Contains(t, readme(t), "`"+name+"`")
	}
}

// The page of tests names tests that there are.
func TestReadmeNamesTests(t *testing.T) {
	named := regexp.MustCompile("`((Test|Fuzz)\\w+)`").FindAllStringSubmatch(page(t, "docs/testing.md"), -1)
	require.NotEmpty(t, named)
	var source strings.Builder
	require.NoError(t, filepath.WalkDir("..", func(path string, _ os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			var text []byte
			text, err = os.ReadFile(path)
			source.Write(text)
		}
		return err
	}))
	for _, test := range named {
		require.Contains(t, source.String(), "\nfunc "+test[1]+"(")
	}
}

// The README's Go code below its first program is that of this file, line by line, so it is compiled.
func TestReadmeCodeIsCompiled(t *testing.T) {
	compiled := withoutIndent(page(t, "ginlimit_test/readme_test.go"))
	code := blocks(readme(t), "go")
	require.Len(t, code, 3)
	for _, block := range code[1:] {
		require.Contains(t, compiled, withoutIndent(block))
	}
}

// mountTierFile is the README's way from a tier file to a limited route.
func mountTierFile(router *gin.Engine, limiter *ginlimit.Limiter, chat gin.HandlerFunc) {
	table, err := tiers.LoadFile("tiers.yaml")
	if err != nil {
		log.Fatal(err) // it names tier, field, value and rule
	}
	limited := ginlimit.New(limiter, resolver, ginlimit.WithTiers(table), ginlimit.WithAtomicWindows())
	router.POST("/v1/chat/completions", limited, chat)
}

// mountTokens is the README's route with budgets of tokens and money.
func mountTokens(router *gin.Engine, limiter *ginlimit.Limiter, table *tiers.Store, chat gin.HandlerFunc) {
	prices := openai.WithPrices(map[string]openai.Price{"gpt-4o": {Input: 2_500_000, Output: 10_000_000}})
	limited := ginlimit.New(limiter, resolver, ginlimit.WithTiers(table),
		ginlimit.WithUsage(openai.Estimator(prices)), ginlimit.WithConcurrency())
	router.POST("/v1/chat/completions", limited, openai.Meter(prices), chat) // or gin.WrapH(proxy)
}

// observe is the code of docs/metrics.md.
func observe(router *gin.Engine, limiter *ginlimit.Limiter) gin.HandlerFunc {
	metrics := prom.New(limiter) // package ginlimit/prom
	prometheus.MustRegister(metrics)
	limited := ginlimit.New(limiter, resolver, ginlimit.WithObserver(metrics), ginlimit.WithAtomicWindows())
	router.GET("/metrics", gin.WrapH(promhttp.Handler()))
	return limited
}

func TestPageOfMetrics(t *testing.T) {
	code := blocks(page(t, "docs/metrics.md"), "go")
	require.Len(t, code, 1)
	require.Contains(t, withoutIndent(page(t, "ginlimit_test/readme_test.go")), withoutIndent(code[0]))

	router := gin.New()
	router.GET("/limited", headerAuth, observe(router, ginlimit.NewMemoryLimiter()))
	get := func(path string) string {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set(headerUser, "alice")
		w := httptest.NewRecorder()
		router.ServeHTTP(w, r)
		require.Equal(t, http.StatusOK, w.Code)
		return w.Body.String()
	}
	get("/limited")
	require.Regexp(t, `ginlimit_decisions_total\{.*outcome="admitted".*\} 1`, get("/metrics"))
}

// posted sends a chat completion of alice, on a tier.
func posted(router http.Handler, tier tiers.Tier) *httptest.ResponseRecorder {
	w, body := httptest.NewRecorder(), `{"model": "gpt-4o", "messages": [{"role": "user", "content": "Hi"}]}`
	r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
	r.Header.Set(headerUser, "alice")
	r.Header.Set(headerTier, string(tier))
	router.ServeHTTP(w, r)
	return w
}

// The README's tier file is that of the default table, and the code below it limits a route by it.
func TestReadmeTierFileIsMounted(t *testing.T) {
	files := blocks(readme(t), "yaml")
	require.Len(t, files, 1)
	store, err := tiers.Load(strings.NewReader(files[0]))
	require.NoError(t, err)
	require.Equal(t, tiers.Default(), store)

	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("tiers.yaml", []byte(files[0]), 0o600))
	router := gin.New()
	router.Use(headerAuth)
	mountTierFile(router, ginlimit.NewMemoryLimiter(), func(c *gin.Context) { c.Status(http.StatusOK) })
	for range 5 {
		require.Equal(t, http.StatusOK, posted(router, tiers.Free).Code)
	}
	require.Equal(t, http.StatusTooManyRequests, posted(router, tiers.Free).Code)
}

// The README's code for tokens and money takes the tiers of docs/budgets.md, and settles what the answer
// says: 1,000 tokens in and 200 out are 0.0045.
func TestReadmeTokensAreSettled(t *testing.T) {
	files := blocks(page(t, "docs/budgets.md"), "yaml")
	require.Len(t, files, 1)
	table, err := tiers.Load(strings.NewReader(files[0]))
	require.NoError(t, err)
	limiter, router := ginlimit.NewMemoryLimiter(), gin.New()
	router.Use(headerAuth)
	mountTokens(router, limiter, table, func(c *gin.Context) {
		c.Data(http.StatusOK, "application/json", []byte(`{"model": "gpt-4o",
			"choices": [{"message": {"content": "Hi!"}}],
			"usage": {"prompt_tokens": 1000, "completion_tokens": 200, "total_tokens": 1200}}`))
	})
	w := posted(router, tiers.Pro)
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "100000", w.Header().Get(ginlimit.HeaderLimitTokens))
	require.Equal(t, "20.00", w.Header().Get(ginlimit.HeaderLimitSpend))
	left, err := limiter.Usage(t.Context(), "alice", table.Lookup(tiers.Pro))
	require.NoError(t, err)
	var used []string
	for _, d := range left {
		used = append(used, fmt.Sprintf("%s %d", d.Budget, d.Limit-d.Remaining))
	}
	require.Equal(t, []string{" 1", "tokens 1200", "spend 4500", "concurrent 0"}, used)
}

// The ACL of docs/redis.md is enough for all that a limiter does with requests, and for the look at the
// server. Tokens and money need its last line, too.
func TestReadmeACL(t *testing.T) {
	rules := regexp.MustCompile(`(?m)^ACL SETUSER .*$`).FindAllString(page(t, "docs/redis.md"), -1)
	require.NotEmpty(t, rules)
	srv := redistest.Start(t)
	allow := func(rule string) {
		var args []any
		for _, word := range strings.Fields(rule) {
			args = append(args, word)
		}
		require.NoError(t, srv.Client(t).Do(t.Context(), args...).Err())
	}
	last := len(rules) - 1
	for _, rule := range rules[:last] {
		allow(rule)
	}
	rdb, err := redisclient.New("redis://ginlimit:PASSWORD@" + srv.Addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = rdb.Close() })
	require.NoError(t, redisclient.SelfCheck(t.Context(), rdb))

	l := ginlimit.NewLimiter(rdb)
	api := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 1, 1))))
	require.Equal(t, "1 0 minute", api.as("alice").limits(t))
	require.Equal(t, "1 0 minute", api.as("alice").limits(t))
	_, err = l.Peek(t.Context(), "alice", 1, time.Minute)
	require.NoError(t, err)
	_, err = l.Check(t.Context(), "bob", 1, 24*time.Hour)
	require.NoError(t, err)
	require.Equal(t, "1 0 day", api.as("bob").limits(t), "giving back is allowed too")
	require.Zero(t, srv.Client(t).Exists(t.Context(), "ratelimit:bob:60").Val())
	require.NoError(t, l.Reset(t.Context(), "alice"))

	captureLogs(t)
	tokens, limits := plenty(t, func(l *tiers.Limits) {
		l.TokensPerDay, l.SpendPerDay, l.Concurrent = 1000, 1000, 2
	})
	l = l.Scope("tokens")
	api = serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(tokens), ginlimit.WithUsage(headerUsage),
		ginlimit.WithConcurrency()), func(c *gin.Context) {
		ginlimit.AdmissionFrom(c).Settle(ginlimit.Usage{Tokens: 3, Spend: 700})
	})
	require.Equal(t, http.StatusServiceUnavailable, api.as("alice", "Tokens", "10", "Spend", "500").StatusCode)
	allow(rules[last])
	require.NoError(t, redisclient.SelfCheck(t.Context(), rdb))
	require.Equal(t, http.StatusOK, api.as("alice", "Tokens", "10", "Spend", "500").StatusCode)
	require.Eventually(t, func() bool {
		u := used(t, l, "alice", limits)
		return u["tokens24h0m0s"] == 3 && u["spend24h0m0s"] == 700 && u["concurrent"] == 0
	}, 5*time.Second, time.Millisecond)
}
