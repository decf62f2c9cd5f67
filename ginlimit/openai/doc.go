// Package openai measures what requests to model providers cost: OpenAI's chat completions, responses, legacy
// completions and embeddings, and Anthropic's messages, as JSON and as event streams.
//
// Estimator reads a request and returns the most tokens that it may use: give it to ginlimit.WithUsage. Meter
// reads the provider's answer on its way to the client and settles the real usage. To charge the usage of any
// handler or reverse proxy, mount Meter after the limiter:
//
//	v1.Use(ginlimit.New(limiter, resolver, ginlimit.WithUsage(openai.Estimator(prices))), openai.Meter(prices))
//
// Both recognize the format by the fields of the body. If a body fits two formats, headers and path decide.
//
// Nothing here is exact before the provider has answered. The request that exceeds a budget completes; the
// next one is rejected.
package openai
