// Package openai knows what requests to model providers cost: OpenAI's chat completions, responses, legacy
// completions and embeddings, and Anthropic's messages, as JSON and as event streams.
//
// Estimator reads a request and says beforehand how many tokens it may take: give it to ginlimit.WithUsage.
// Meter reads the provider's answer on its way to the client and settles what was really used. Any handler
// and any reverse proxy gets accounting by mounting it behind the limiter:
//
//	v1.Use(ginlimit.New(limiter, resolver, ginlimit.WithUsage(openai.Estimator(prices))), openai.Meter(prices))
//
// Both tell the formats apart by the fields of the body. Only where a body fits two formats do headers and
// path decide.
//
// Nothing here is exact before the provider has spoken. The request that crosses a budget completes; the next
// one is refused.
package openai
