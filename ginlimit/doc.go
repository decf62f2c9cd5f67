// Package ginlimit limits requests, tokens and money per user and tier, in front of Gin handlers.
//
// New is the middleware. It asks a TierResolver for the caller and decides the budgets of the caller's tier.
// Then it answers 429 with an exact Retry-After, or lets the request pass, with the remaining budget in the
// headers. Limiter is the primitive below it: one sliding window of one user, for use without Gin. NewLimiter
// keeps the counts in Redis, where one Lua script decides; NewMemoryLimiter makes the same decisions in one
// process.
//
// Windows of requests are exact: a log of admitted requests, which the script trims, counts and extends.
// Tokens and money (WithUsage) are reserved before the handler runs and settled after it has returned; the
// handler reports its usage through AdmissionFrom. Each request in progress (WithConcurrency) holds a lease.
//
// All windows are half-open, (now-window, now], in milliseconds of the Redis server's clock: a request
// exactly one window old no longer counts.
//
// What not every program needs is in packages below this one: redisclient has Redis clients with suitable
// settings; openai estimates and meters tokens; headers has the dialects for WithHeaders; prom and otel
// export metrics; admin has routes for operators; ginlimittest helps to test your own handlers.
//
// Constructors panic at start, on nil and on contradictory options; no request causes a panic. Everything
// that they return is safe for concurrent use.
package ginlimit
