package openai

import (
	"fmt"
	"net/http"
	"sort"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit"
)

// Estimator returns an estimator for requests to model providers. An estimate is the tokens of the prompt
// plus the output. The output is the largest limit in the body (max_tokens, max_completion_tokens,
// max_output_tokens) times the number of choices, at most WithMaxOutput. If the body has no limit,
// WithDefaultOutput is used. A body of unknown format, a body that is not JSON and a body above WithMaxBody
// get the default estimate: WithDefaultOutput and no prompt. A GET or a HEAD without a body takes nothing.
// The spend is the price of these tokens (WithPrices), none of them cached.
//
// Prompts are counted with the o200k_base vocabulary, which is part of the program; the counts of other
// models differ somewhat. Above 64 KiB of text the count is projected from a sample. Tool definitions count
// as text. An image counts as 1,600 tokens, whatever its size; audio, video and documents count as one token
// per 64 bytes of base64, at least 1,600. A limit that is not a number above 0 is ignored; others are rounded
// up and clamped.
//
// The body is read into memory, and handlers read it again from its start; ContentLength does not change.
// Estimate fails only if reading the body fails: the client left, or the body is larger than
// http.MaxBytesReader allows. It wraps that error. It is safe for concurrent use. The first 64 KiB of text
// cost up to 60 ms, and a body of 32 MiB some tenths of a second more.
//
// The estimator has a second method. A limiter that knows the caller's budgets calls it, so that a high limit
// in the body reserves only a share of a budget and the request is not rejected for it:
//
//	EstimateWithin(c *gin.Context, most ginlimit.Usage) (ginlimit.Usage, error)
//
// It reduces the output until tokens and spend are at most those of most, if the prompt leaves room for that.
// An output that the body does not limit is a guess, and takes at most a third of most. A zero in most is no
// bound.
func Estimator(opts ...Option) ginlimit.Estimator {
	return &estimator{newOptions(opts), newCounter()}
}

type estimator struct {
	options
	counter counter
}

func (e *estimator) Estimate(c *gin.Context) (ginlimit.Usage, error) {
	return e.EstimateWithin(c, ginlimit.Usage{})
}

func (e *estimator) EstimateWithin(c *gin.Context, most ginlimit.Usage) (ginlimit.Usage, error) {
	if !hasBody(c.Request) && (c.Request.Method == http.MethodGet || c.Request.Method == http.MethodHead) {
		return ginlimit.Usage{}, nil
	}
	req, err := readRequest(c.Request, e.maxBody)
	if err != nil {
		return ginlimit.Usage{}, fmt.Errorf("openai: read the request body: %w", err)
	}
	prompt, output := req.promptTokens(e.counter), req.outputTokens(&e.options)
	if req.declared == 0 {
		most = ginlimit.Usage{Tokens: (most.Tokens + 2) / 3, Spend: (most.Spend + 2) / 3} // a 0 stays 0
	}
	with := func(output int) ginlimit.Usage {
		return ginlimit.Usage{Tokens: prompt + output, Spend: e.prices.cost(prompt, 0, output, req.model)}
	}
	// The largest output that fits. Tokens and spend grow with the output, so a binary search finds it.
	fits := sort.Search(output, func(n int) bool {
		u := with(n + 1)
		return most.Tokens > 0 && u.Tokens > most.Tokens || most.Spend > 0 && u.Spend > most.Spend
	})
	return with(fits), nil
}
