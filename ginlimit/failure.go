package ginlimit

// FailurePolicy says what happens to a request that Redis could not decide. The zero value is
// FailClosed.
type FailurePolicy struct {
	open  bool
	local *Limiter
}

// FailClosed answers 503 with the code "rate_limiter_unavailable" and Retry-After: 1. It is the
// default: what is not counted is not served.
func FailClosed() FailurePolicy { return FailurePolicy{} }

// FailOpen serves the request, without limit headers. Choose it where a missed request hurts more
// than an unlimited one, such as a list of models. Every such pass is observed, as StoreError, and
// at most one a second is logged.
func FailOpen() FailurePolicy { return FailurePolicy{open: true} }

// FailLocal lets a memory limiter decide by the same budgets for as long as Redis cannot. Each
// process counts for itself, from nothing, so a fleet of n may admit n times the limit, unless m was
// made WithReplicas(n); when Redis is back, it knows nothing of what was admitted meanwhile. m may
// serve several routes; its own scope and kill switch are not used. It panics unless m was made by
// NewMemoryLimiter.
func FailLocal(m *Limiter) FailurePolicy {
	mustNotBeNil("FailLocal: limiter", m)
	if !m.counter.Local {
		panic("ginlimit: FailLocal: limiter is not one of NewMemoryLimiter")
	}
	return FailurePolicy{local: m}
}
