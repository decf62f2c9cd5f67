package openai_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit/openai"
)

// A gateway to a provider: what each request really used is settled behind the proxy's back.
func ExampleMeter() {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"model": "gpt-4o-2024-08-06", "choices": [{"message": {"content": "Hi!"}}],
			"usage": {"prompt_tokens": 1000, "completion_tokens": 200, "total_tokens": 1200}}`)
	}))
	defer provider.Close()
	target, err := url.Parse(provider.URL)
	if err != nil {
		log.Fatal(err)
	}

	prices := openai.WithPrices(map[string]openai.Price{
		"gpt-4o":      {Input: 2_500_000, CachedInput: 1_250_000, Output: 10_000_000}, // 2.50, 1.25 and 10.00
		"gpt-4o-mini": {Input: 150_000, CachedInput: 75_000, Output: 600_000},
	})
	router := gin.New()
	// Here stands ginlimit.New(limiter, resolver, ginlimit.WithUsage(openai.Estimator(prices))).
	router.Use(limited(), witness(func(w word) {
		fmt.Println("settled:", w.Tokens, "tokens,", w.Spend, "dollars")
	}))
	router.Use(openai.Meter(prices))
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1, // every event of a stream at once
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
	}
	router.POST("/v1/*path", func(c *gin.Context) { proxy.ServeHTTP(c.Writer, c.Request) })

	gateway := httptest.NewServer(router)
	res, err := http.Post(gateway.URL+"/v1/chat/completions", "application/json", strings.NewReader(
		`{"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]}`))
	if err != nil {
		log.Fatal(err)
	}
	_ = res.Body.Close()
	gateway.Close() // waits for its handlers
	fmt.Println(res.Status)
	// Output:
	// settled: 1200 tokens, 0.0045 dollars
	// 200 OK
}

// What a request may take, before the provider has counted.
func ExampleEstimator() {
	estimator := openai.Estimator(openai.WithPrices(map[string]openai.Price{
		"gpt-4o": {Input: 2_500_000, Output: 10_000_000},
	}))
	c, _ := gin.CreateTestContext(httptest.NewRecorder())
	c.Request = httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(
		`{"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello, world!"}], "max_tokens": 100}`))
	u, err := estimator.Estimate(c)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(u.Tokens, "tokens,", u.Spend, "dollars")
	// Output: 108 tokens, 0.00102 dollars
}
