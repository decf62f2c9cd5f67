package main

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Bodies that hold as many values as they can take little more memory than their length, and time in
// proportion to it: decoded as a whole, a million messages in 32 MiB took 6.5 s and 2 GB.
func TestBodiesOfManyValues(t *testing.T) {
	a := start(t, nil)
	const size = 4 << 20
	many := func(value string) string {
		return strings.TrimSuffix(strings.Repeat(value+",", size/(len(value)+1)), ",")
	}
	for name, row := range map[string]struct {
		path, before, value, after string
		want                       int
	}{
		"messages":   {"chat/completions", `{"model":"m","messages":[`, `{"role":"user","content":""}`, `]}`, 400},
		"parts":      {"chat/completions", `{"model":"m","messages":[{"content":[`, `{}`, `]}]}`, 400},
		"fields":     {"chat/completions", `{"model":"m","messages":[{}]`, `"":0`, `}`, 200},
		"responses":  {"responses", `{"model":"m","input":[`, `{"role":"user","content":"a"}`, `]}`, 400},
		"embeddings": {"embeddings", `{"model":"m","input":[`, `"a"`, `]}`, 400},
		"tokens":     {"embeddings", `{"model":"m","input":[`, `1`, `]}`, 200},
		"prompts":    {"completions", `{"model":"m","prompt":[`, `"a"`, `]}`, 400},
	} {
		body := row.before + many(row.value) + row.after
		if name == "fields" {
			body = row.before + "," + many(row.value) + row.after
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		res := a.send(t, "POST", "/v1/"+row.path, proKey, body)
		runtime.ReadMemStats(&after)
		require.Equal(t, row.want, res.status, "%s: %.300s", name, res.body)
		// All that was ever allocated, the client's part too.
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16*size), name)
	}
}

// The same input has the same vector, of length 1, as numbers or as base64 of little-endian float32.
func TestEmbeddings(t *testing.T) {
	t.Parallel()
	a := start(t, nil)
	type answer struct {
		Object, Model string
		Data          []struct {
			Object    string
			Index     int
			Embedding []float32
		}
		Usage usage
	}
	ask := func(fields string) (got answer) {
		a.send(t, "POST", "/v1/embeddings", proKey, `{"model":"any",`+fields+`}`).json(t, &got)
		return got
	}
	one := ask(`"input":"Hello there"`)
	require.Equal(t, "list any embedding", one.Object+" "+one.Model+" "+one.Data[0].Object)
	require.Len(t, one.Data[0].Embedding, defaultDimensions)
	require.Equal(t, usage{PromptTokens: 2, TotalTokens: 2}, one.Usage)
	squares := 0.0
	for _, n := range one.Data[0].Embedding {
		squares += float64(n) * float64(n)
	}
	require.InDelta(t, 1, squares, 1e-5)

	two := ask(`"input":["Hello","Hello there"]`)
	require.Len(t, two.Data, 2)
	require.Equal(t, 1, two.Data[1].Index)
	require.Equal(t, one.Data[0].Embedding, two.Data[1].Embedding)
	require.NotEqual(t, one.Data[0].Embedding, two.Data[0].Embedding)
	require.Equal(t, usage{PromptTokens: 3, TotalTokens: 3}, ask(`"input":[1,2,3]`).Usage)
	require.Len(t, ask(`"input":[[1],[2,3]]`).Data, 2)

	small := ask(`"input":"x","dimensions":3`).Data[0].Embedding
	require.Len(t, small, 3)
	var coded struct{ Data []struct{ Embedding string } }
	a.send(t, "POST", "/v1/embeddings", proKey,
		`{"model":"any","input":"x","dimensions":3,"encoding_format":"base64"}`).json(t, &coded)
	bytes, err := base64.StdEncoding.DecodeString(coded.Data[0].Embedding)
	require.NoError(t, err)
	for i, n := range small {
		require.Equal(t, n, math.Float32frombits(binary.LittleEndian.Uint32(bytes[4*i:])))
	}
}

// What is wrong with a request to any of the model's routes is told by the name of the parameter.
func TestBadRequestsOfOtherFormats(t *testing.T) {
	t.Parallel()
	a := start(t, nil)
	const msgs = `"messages":[{"role":"user","content":"x"}]`
	for _, row := range []struct{ path, body, param string }{
		{"messages", `{` + msgs + `,"max_tokens":5}`, "model"},
		{"messages", `{"model":"m",` + msgs + `}`, "max_tokens"},
		{"messages", `{"model":"m",` + msgs + `,"max_tokens":"5"}`, "max_tokens"},
		{"messages", `{"model":"m",` + msgs + `,"max_tokens":1.5}`, "max_tokens"},
		{"messages", `{"model":"m","max_tokens":5}`, "messages"},
		{"messages", `{"model":"m","max_tokens":5,"messages":[{"role":1}]}`, "messages.role"},
		{"responses", `{"model":"m"}`, "input"},
		{"responses", `{"model":"m","input":7}`, "input"},
		{"responses", `{"model":"m","input":[]}`, "input"},
		{"responses", `{"model":"m","input":["x"]}`, "input"},
		{"responses", `{"model":"m","input":"x","max_output_tokens":0}`, "max_output_tokens"},
		{"completions", `{"model":"m"}`, "prompt"},
		{"completions", `{"model":"m","prompt":["a","b"]}`, "prompt"},
		{"completions", `{"model":"m","prompt":"x","stream_options":{"include_usage":1}}`, "stream_options"},
		{"embeddings", `{"model":"m"}`, "input"},
		{"embeddings", `{"model":"m","input":""}`, "input"},
		{"embeddings", `{"model":"m","input":[]}`, "input"},
		{"embeddings", `{"model":"m","input":["x",1]}`, "input"},
		{"embeddings", `{"model":"m","input":{"a":1}}`, "input"},
		{"embeddings", `{"model":"m","input":[` + strings.Repeat(`"x",`, maxInputs) + `"x"]}`, "input"},
		{"embeddings", `{"model":"m","input":"x","dimensions":3073}`, "dimensions"},
		{"embeddings", `{"model":"m","input":"x","encoding_format":"int8"}`, "encoding_format"},
	} {
		a.send(t, "POST", "/v1/"+row.path, proKey, row.body).
			wantError(t, 400, "invalid_request_error", row.param, nil)
	}
}

func TestLegacyCompletion(t *testing.T) {
	t.Parallel()
	a := start(t, nil)
	for _, prompt := range []string{`"Hello there"`, `["Hello there"]`} {
		var got completion
		a.send(t, "POST", "/v1/completions", proKey, `{"model":"any","prompt":`+prompt+`}`).json(t, &got)
		require.Equal(t, "text_completion You said: Hello there stop", got.Object+" "+*got.Choices[0].Text+" "+
			*got.Choices[0].FinishReason)
		require.Equal(t, newUsage(2, 5), got.Usage)
	}
	res := a.send(t, "POST", "/v1/completions", proKey,
		`{"model":"any","prompt":"Hi","max_tokens":2,"stream":true,"stream_options":{"include_usage":true}}`)
	require.Contains(t, res.body, `"text":"You ","finish_reason":null`)
	require.Contains(t, res.body, `"finish_reason":"length"`)
	require.Contains(t, res.body, `"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}`)
	require.True(t, strings.HasSuffix(res.body, "\n\ndata: [DONE]\n\n"))
}
