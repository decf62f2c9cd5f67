package main

import (
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/tiktoken-go/tokenizer/codec"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/openai"
)

// tokenizer counts tokens as OpenAI's models since GPT-4o do (o200k_base): those of prompts by the limiter's
// own estimator, so that what is reserved for a prompt is what it takes.
type tokenizer struct {
	prompts ginlimit.Estimator
	codec   *codec.Codec
}

// newTokenizer builds the vocabulary, which takes some milliseconds.
func newTokenizer(maxBody int64) tokenizer {
	// At a price of a millionth for each token of input, and none for output, the spend is the prompt's length.
	prices := openai.WithPrices(priceTable{"": {Input: 1_000_000}})
	return tokenizer{openai.Estimator(prices, openai.WithMaxBody(maxBody)), codec.NewO200kBase()}
}

// prompt returns the number of tokens in the prompt of a request whose body was read by readBody.
func (t tokenizer) prompt(c *gin.Context) (int, *apiError) {
	u, err := t.prompts.Estimate(c)
	if err != nil {
		return 0, errNotJSON // reading from memory does not fail
	}
	return int(u.Spend), nil
}

// count returns the number of tokens in a short text. Some texts cost time that grows with the square of
// their length.
func (t tokenizer) count(text string) int {
	n, err := t.codec.Count(text)
	if err != nil {
		return len(text) // the codec has no error for valid UTF-8
	}
	return n
}

// truncate returns the first limit tokens of a short text, and whether that cut anything off.
func (t tokenizer) truncate(text string, limit int) (string, bool) {
	_, tokens, err := t.codec.Encode(text)
	if err != nil || len(tokens) <= limit {
		return text, false
	}
	return strings.ToValidUTF8(strings.Join(tokens[:limit], ""), ""), true // a token may end within a character
}
