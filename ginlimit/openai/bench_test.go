package openai_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit/openai"
)

// discard is a client that reads nothing, so that only what stands before it is measured.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}
func (d discard) Flush()                      {}

// What the Meter adds to a chunk of a stream: compare its ns/chunk to those without.
func BenchmarkStreamedChunk(b *testing.B) {
	chunk := []byte(`data: {"id":"chatcmpl-BpQ0fCkVt7aIyVw9","object":"chat.completion.chunk","created":1751,` +
		`"model":"gpt-4o-2024-08-06","service_tier":"default","system_fingerprint":"fp_07871e2ad8","choices":` +
		`[{"index":0,"delta":{"content":" tokens"},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n")
	for _, row := range []struct {
		name, body string
		meter      []gin.HandlerFunc
	}{
		{"without", askStream, nil},
		{"metered", askStream, []gin.HandlerFunc{openai.Meter()}},
		{"usage taken out", askStreamOnly, []gin.HandlerFunc{openai.Meter()}},
	} {
		b.Run(row.name, func(b *testing.B) {
			router := gin.New()
			router.Use(row.meter...)
			router.POST("/", func(c *gin.Context) {
				c.Header("Content-Type", "text/event-stream")
				for b.Loop() {
					_, _ = c.Writer.Write(chunk)
					c.Writer.Flush()
				}
				_, _ = c.Writer.WriteString(usageChunk)
			})
			b.ReportAllocs()
			router.ServeHTTP(discard{http.Header{}}, contextOf("/", row.body).Request)
		})
	}
}

// A whole request with a JSON answer.
func BenchmarkJSONAnswer(b *testing.B) {
	answer := []byte(`{"id":"chatcmpl-1","model":"gpt-4o","choices":[{"index":0,"message":` +
		`{"role":"assistant","content":"` +
		strings.Repeat("The quick brown fox. ", 100) + `"}}],"usage":{"prompt_tokens":12,"completion_tokens":600}}`)
	for name, meter := range map[string][]gin.HandlerFunc{"without": nil, "metered": {openai.Meter()}} {
		b.Run(name, func(b *testing.B) {
			router := gin.New()
			router.Use(meter...)
			router.POST("/", func(c *gin.Context) { c.Data(http.StatusOK, "application/json", answer) })
			b.ReportAllocs()
			for b.Loop() {
				router.ServeHTTP(discard{http.Header{}}, contextOf("/", askChat).Request)
			}
		})
	}
}

// An estimate of a prompt of that many bytes of English.
func BenchmarkEstimate(b *testing.B) {
	e := openai.Estimator()
	for name, n := range map[string]int{"1KiB": 1 << 10, "64KiB": 1 << 16, "1MiB": 1 << 20, "16MiB": 1 << 24} {
		b.Run(name, func(b *testing.B) {
			text := strings.Repeat("The quick brown fox jumps over the lazy dog. ", n/45+1)[:n]
			body := `{"messages":[{"role":"user","content":"` + text + `"}],"max_tokens":100}`
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Estimate(contextOf("/", body)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("image of 16MiB", func(b *testing.B) {
		body := `{"messages":[{"role":"user","content":[{"type":"image_url",` +
			`"image_url":{"url":"data:image/png;base64,` +
			strings.Repeat("iVBO", 4<<20) + `"}}]}],"max_tokens":100}`
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := e.Estimate(contextOf("/", body)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
