package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/tidwall/gjson"
)

const (
	defaultDimensions = 256
	maxDimensions     = 3072
	maxInputs         = 2048
	maxNumbers        = 1 << 20 // in all vectors of an answer
)

// embedding is one vector of the answer to POST /v1/embeddings: a list of numbers or, as OpenAI's SDKs of
// other languages ask for it, little-endian float32 in base64.
type embedding struct {
	Object    string `json:"object"`
	Index     int    `json:"index"`
	Embedding any    `json:"embedding"`
}

// embed answers POST /v1/embeddings. The same input always has the same vector, of length 1. Inputs that are
// alike do not have vectors that are alike.
func (b builtIn) embed(c *gin.Context) {
	q, problem := readQuestion(c, nil, "input", "dimensions", "encoding_format")
	if problem != nil {
		abort(c, problem)
		return
	}
	vectors, problem := q.embeddings()
	if problem != nil {
		abort(c, problem)
		return
	}
	prompt, problem := b.model.tokens.prompt(c)
	if problem != nil {
		abort(c, problem)
		return
	}
	c.JSON(http.StatusOK, gin.H{
		"object": "list", "data": vectors, "model": q.model,
		"usage": gin.H{"prompt_tokens": prompt, "total_tokens": prompt},
	})
}

func (q question) embeddings() ([]embedding, *apiError) {
	inputs, problem := q.inputs()
	if problem != nil {
		return nil, problem
	}
	dimensions, problem := q.fields.positive("dimensions")
	switch {
	case problem != nil:
		return nil, problem
	case dimensions == 0:
		dimensions = defaultDimensions
	case dimensions > maxDimensions, dimensions*len(inputs) > maxNumbers:
		return nil, invalid("dimensions", fmt.Sprintf(
			"dimensions must be at most %d, and times the inputs at most %d.", maxDimensions, maxNumbers))
	}
	format, problem := q.fields.text("encoding_format")
	switch {
	case problem != nil:
		return nil, problem
	case format != "" && format != "float" && format != "base64":
		return nil, invalid("encoding_format", "encoding_format must be float or base64.")
	}
	var all []embedding
	for i, input := range inputs {
		e := embedding{"embedding", i, vector(input, dimensions)}
		if format == "base64" {
			bytes, _ := binary.Append(nil, binary.LittleEndian, e.Embedding) // of numbers, it does not fail
			e.Embedding = base64.StdEncoding.EncodeToString(bytes)
		}
		all = append(all, e)
	}
	return all, nil
}

// inputs are what vectors are made of: a text, a list of texts, the tokens of one, or a list of such.
func (q question) inputs() (inputs []string, problem *apiError) {
	input, ok := q.fields["input"]
	switch {
	case !ok, input.Raw == `""`, input.IsArray() && !input.Get("0").Exists():
		return nil, invalid("input", "The request has no input.")
	case input.Type == gjson.String, input.IsArray() && input.Get("0").Type == gjson.Number:
		return []string{input.String()}, nil
	case !input.IsArray():
		return nil, wrongType("input")
	}
	input.ForEach(func(_, item gjson.Result) bool {
		switch {
		case item.Type != gjson.String && !item.IsArray():
			problem = wrongType("input")
		case len(inputs) == maxInputs:
			problem = invalid("input", fmt.Sprintf("The request has more than %d inputs.", maxInputs))
		}
		inputs = append(inputs, item.String())
		return problem == nil
	})
	return inputs, problem
}

func vector(input string, dimensions int) []float32 {
	random := rand.New(rand.NewChaCha8(sha256.Sum256([]byte(input))))
	numbers, squares := make([]float64, dimensions), 0.0
	for i := range numbers {
		numbers[i] = random.NormFloat64()
		squares += numbers[i] * numbers[i]
	}
	vector, length := make([]float32, dimensions), math.Sqrt(squares)
	for i, n := range numbers {
		vector[i] = float32(n / length)
	}
	return vector
}
