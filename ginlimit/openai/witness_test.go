package openai_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/openai"
	"github.com/gin-tiers/ratelimit/tiers"
)

// word is what a limiter has been told when its handlers have returned.
type word struct {
	ginlimit.Usage
	said bool
}

// limited is a limiter that lets all pass.
func limited() gin.HandlerFunc {
	resolver := ginlimit.TierResolverFunc(func(*gin.Context) (ginlimit.Subject, error) {
		return ginlimit.Subject{UserID: "alice"}, nil
	})
	unlimited := tiers.Limits{PerMinute: tiers.Unlimited, PerDay: tiers.Unlimited}
	table, err := tiers.NewStore(tiers.Free, map[tiers.Tier]tiers.Limits{tiers.Free: unlimited})
	if err != nil {
		panic(err)
	}
	return ginlimit.New(ginlimit.NewMemoryLimiter(), resolver, ginlimit.WithTiers(table))
}

// witness stands behind the limiter.
func witness(told func(word)) gin.HandlerFunc {
	return func(c *gin.Context) {
		defer func() {
			u, said, _ := ginlimit.AdmissionFrom(c).Recorded()
			told(word{u, said})
		}()
		c.Next()
	}
}

// answered is what a client got, what the handler got, and what was settled.
type answered struct {
	*httptest.ResponseRecorder
	forwarded string
	word
}

// through sends a body through a Meter to a handler that writes these parts, each flushed, with that type.
func through(t testing.TB, body, contentType string, parts []string, opts ...openai.Option) answered {
	t.Helper()
	return ask(t, body, func(c *gin.Context) {
		c.Header("Content-Type", contentType)
		for _, part := range parts {
			n, err := c.Writer.WriteString(part)
			require.NoError(t, err)
			require.Equal(t, len(part), n)
			c.Writer.Flush()
		}
	}, opts...)
}

func ask(t testing.TB, body string, handler gin.HandlerFunc, opts ...openai.Option) answered {
	t.Helper()
	got := answered{ResponseRecorder: httptest.NewRecorder()}
	router := gin.New()
	router.Use(limited(), witness(func(w word) { got.word = w }),
		openai.Meter(append([]openai.Option{prices}, opts...)...))
	router.POST("/", func(c *gin.Context) {
		forwarded, err := io.ReadAll(c.Request.Body)
		require.NoError(t, err)
		require.EqualValues(t, len(forwarded), c.Request.ContentLength)
		got.forwarded = string(forwarded)
		handler(c)
	})
	router.ServeHTTP(got, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
	return got
}

// settled is a word of these tokens under prices that make input and output visible apart.
func settled(input, output int) word {
	return word{ginlimit.Usage{Tokens: input + output, Spend: spend(input, output)}, true}
}

func newRecorder() *httptest.ResponseRecorder { return httptest.NewRecorder() }

func readAll(t testing.TB, r io.Reader) string {
	t.Helper()
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(text)
}
