package openai

import "fmt"

// Option adjusts Estimator and Meter. Give both the same options.
type Option func(*options)

type options struct {
	prices        priceTable
	defaultOutput int
	maxOutput     int
	maxBody       int64
	asksForUsage  bool
}

func newOptions(opts []Option) options {
	o := options{
		defaultOutput: 1024,
		maxOutput:     128 << 10,
		maxBody:       32 << 20,
		asksForUsage:  true,
	}
	for _, opt := range opts {
		if opt == nil {
			panic("openai: an option is nil")
		}
		opt(&o)
	}
	o.defaultOutput = min(o.defaultOutput, o.maxOutput)
	return o
}

// WithDefaultOutput sets how many output tokens are reserved for each choice if the body has no limit, and
// for a body that has an unknown format, is not JSON or is too large. The default is 1,024. It panics below
// 1.
func WithDefaultOutput(tokens int) Option {
	mustBePositive("WithDefaultOutput: tokens", tokens)
	return func(o *options) { o.defaultOutput = tokens }
}

// WithMaxOutput bounds the output tokens that an estimate reserves for a request, all its choices together.
// The default, 131,072, is above what models write today. With a smaller one, requests with high limits fit
// into a small budget: what they use above their reservation is charged when it is known. It panics below 1.
func WithMaxOutput(tokens int) Option {
	mustBePositive("WithMaxOutput: tokens", tokens)
	return func(o *options) { o.maxOutput = tokens }
}

// WithMaxBody bounds how many bytes of a request body are read into memory. The default is 32 MiB. A larger
// body gets the default estimate, and handlers can still read all of it. It panics below 1.
func WithMaxBody(bytes int64) Option {
	mustBePositive("WithMaxBody: bytes", bytes)
	return func(o *options) { o.maxBody = bytes }
}

// WithoutStreamOptions makes Meter leave request bodies unchanged, for providers that refuse stream_options.
// Streams of chat completions are then charged by the streamed text, unless client or provider adds the
// usage.
func WithoutStreamOptions() Option {
	return func(o *options) { o.asksForUsage = false }
}

func mustBePositive[N int | int64](name string, n N) {
	if n < 1 {
		panic(fmt.Sprintf("openai: %s: %d is less than 1", name, n))
	}
}
