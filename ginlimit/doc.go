// Package ginlimit puts budgets of requests, tokens and money, per user and tier, in front of Gin handlers.
//
// New is the middleware. It asks a TierResolver who is calling, decides the budgets of that user's tier, and
// answers 429 with an honest Retry-After or lets the request pass with what is left in the headers. Limiter
// is the primitive below it: one sliding window of one user, for use without Gin. NewLimiter keeps the counts
// in Redis, where one Lua script decides; NewMemoryLimiter makes the same decisions in one process.
//
// Windows of requests are exact: a log of admitted requests, trimmed, counted and extended by the script.
// Tokens and money (WithUsage) are reserved before the handler runs and settled when it has returned;
// AdmissionFrom is how it says what was used. Requests under way (WithConcurrency) hold a lease each.
//
// All windows are half-open, (now-window, now], in milliseconds of the Redis server's clock: a request
// exactly one window old no longer counts.
//
// Constructors panic on nil and on contradictory options, at start; nothing panics on a request. Everything
// that they return is safe for concurrent use.
package ginlimit
