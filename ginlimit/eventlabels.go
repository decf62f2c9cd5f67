package ginlimit

import (
	"context"
	"errors"
	"net"

	"github.com/redis/go-redis/v9"
)

// Label is the request's result at the limiter, for a metric's label: the Outcome, or for a StoreError
// "failed_closed" or "failed_open". It is "" for a StoreError that FailLocal takes over, because the next
// event has the outcome. So, if you skip "", every request counts once at each limiter.
func (e Event) Label() string {
	switch {
	case e.Outcome != StoreError:
		return string(e.Outcome)
	case e.Policy == PolicyLocal:
		return ""
	}
	return "failed_" + e.Policy
}

// NearLimit reports whether the request was admitted and left at most a tenth of its tightest budget.
func (e Event) NearLimit() bool {
	return e.Outcome == Admitted && e.Decision.Limit > 0 && e.Decision.Remaining <= e.Decision.Limit/10
}

// ErrorKind is the kind of Err, for a metric's label: "breaker_open", "timeout", "canceled", "pool",
// "connection", "out_of_memory", "read_only", "loading", "cluster_down", "moved", "denied", "wrong_type" or
// "other"; "" if there is no error.
func (e Event) ErrorKind() string {
	err := e.Err
	var timeout net.Error
	switch {
	case err == nil:
		return ""
	case errors.Is(err, ErrUnavailable):
		return "breaker_open"
	case errors.Is(err, redis.ErrPoolTimeout),
		errors.Is(err, redis.ErrPoolExhausted),
		errors.Is(err, redis.ErrClosed):
		return "pool"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	for _, k := range []struct {
		kind     string
		prefixes []string
	}{
		{"out_of_memory", []string{"OOM "}},
		{"read_only", []string{"READONLY "}},
		{"loading", []string{"LOADING "}},
		{"cluster_down", []string{"CLUSTERDOWN ", "MASTERDOWN "}},
		{"moved", []string{"MOVED ", "ASK ", "TRYAGAIN ", "CROSSSLOT"}},
		{"denied", []string{"NOAUTH ", "NOPERM ", "WRONGPASS "}},
		{"wrong_type", []string{"WRONGTYPE "}},
	} {
		for _, prefix := range k.prefixes {
			if redis.HasErrorPrefix(err, prefix) {
				return k.kind
			}
		}
	}
	if _, answered := errors.AsType[redis.Error](err); answered {
		return "other"
	}
	if _, network := errors.AsType[net.Error](err); network {
		return "connection"
	}
	return "other"
}
