package ginlimit

// FailurePolicy says what happens to a request that Redis could not decide. The zero value is
// FailClosed.
type FailurePolicy struct {
	open  bool
	local *Limiter
}

// FailClosed answers 503 with the code "rate_limiter_unavailable" and Retry-After: 1. It is the default: a
// request that cannot be counted is not served.
func FailClosed() FailurePolicy { return FailurePolicy{} }

// FailOpen serves the request, without limit headers. Choose it for routes where a failed request hurts more
// than an unlimited one, such as a list of models. Every such request is observed, as StoreError, and at most
// one a second is logged.
func FailOpen() FailurePolicy { return FailurePolicy{open: true} }

// FailLocal lets the memory limiter m decide by the same budgets while Redis cannot. Each process counts
// alone, from zero, so n processes may admit n times the limit, unless m was made WithReplicas(n). When Redis
// is back, it does not know what was admitted meanwhile. m may serve several routes; its own scope and kill
// switch are not used. It panics unless m was made by NewMemoryLimiter.
func FailLocal(m *Limiter) FailurePolicy {
	mustNotBeNil("FailLocal: limiter", m)
	if !m.counter.Local {
		panic("ginlimit: FailLocal: limiter is not one of NewMemoryLimiter")
	}
	return FailurePolicy{local: m}
}
