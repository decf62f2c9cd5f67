package openai

import (
	"fmt"
	"net/http"
	"sort"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit"
)

// Estimator returns an estimator for requests to model providers. An estimate is the tokens of the prompt,
// plus the largest output limit that the body declares (max_tokens, max_completion_tokens,
// max_output_tokens) times the number of choices, at most WithMaxOutput. A body that declares none is taken
// to declare WithDefaultOutput. A body of no known format, one that is not JSON and one above WithMaxBody
// get the default estimate: WithDefaultOutput and no prompt. A GET or a HEAD without a body takes nothing.
// The spend is the price of these tokens (WithPrices), none of them cached.
//
// Prompts are counted by the o200k_base vocabulary, which is part of the program; other models' own counts
// differ somewhat. Above 64 KiB of text the count is projected from a sample. Tool definitions count as
// text. An image counts 1,600 tokens whatever its size; audio, video and documents count one token for each
// 64 bytes of base64, 1,600 at least. A number that is not at least a fraction above 0 declares nothing;
// others are rounded up and clamped.
//
// The body is read into memory, and handlers read it again from its start; ContentLength stays. Estimate
// fails only where reading the body fails: the client left, or the body is larger than http.MaxBytesReader
// allows. It wraps that error. It is safe for concurrent use. The first 64 KiB of text cost up to 60 ms, and
// a body of 32 MiB some tenths of a second more.
//
// The estimator has a second method, for a limiter that knows the caller's budgets and would rather reserve
// a share of one than refuse a request for its generous limit:
//
//	EstimateWithin(c *gin.Context, most ginlimit.Usage) (ginlimit.Usage, error)
//
// It reserves so much less output that neither number is above that of most, as far as the prompt leaves
// room; a zero in most is no bound.
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
	with := func(output int) ginlimit.Usage {
		return ginlimit.Usage{Tokens: prompt + output, Spend: e.prices.cost(prompt, 0, output, req.model)}
	}
	// The largest output that fits: with it, tokens and spend only grow.
	fits := sort.Search(output, func(n int) bool {
		u := with(n + 1)
		return most.Tokens > 0 && u.Tokens > most.Tokens || most.Spend > 0 && u.Spend > most.Spend
	})
	return with(fits), nil
}
