// Package ginlimit puts exact request budgets, per user and tier, in front of Gin handlers.
//
// New is the middleware: it asks a TierResolver who is calling, decides the minute and the day of
// that user's tier, and answers 429 with an honest Retry-After or lets the request pass with its
// remaining budget in the headers. Limiter is the primitive below it, one sliding window of one
// user, for use without Gin. The count is a log of admitted requests in a Redis sorted set,
// trimmed, counted and extended by one Lua script; NewMemoryLimiter makes the same decisions in
// one process.
//
// All windows are half-open, (now-window, now], in milliseconds of the Redis server's clock: a
// request exactly one window old no longer counts.
//
// Constructors panic on nil and on contradictory options, at start; nothing panics on a request.
// Everything that they return is safe for concurrent use.
package ginlimit
