// Package otel exports the decisions of limiters to OpenTelemetry: attributes on the span of the request, and
// metrics. It uses only the API; the application sets up the SDK. No attribute holds a user or a key.
package otel

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/tiers"
)

// scopeName is the instrumentation scope of the metrics.
const scopeName = "github.com/gin-tiers/ratelimit/ginlimit/otel"

// Observer is a ginlimit.Observer for any number of mounts. It is safe for concurrent use.
//
// A tracing middleware before the limiter puts a span into the request's context. On that span the Observer
// sets ratelimit.outcome, .tier, .window, .scope, .limit, .remaining and, on a rejection, .retry_after in
// seconds; on an error of the store ratelimit.error, its kind. With stacked limiters the last one wins.
//
// Its metrics have the attributes in brackets:
//
//	ginlimit.decisions [tier window scope outcome]     requests by outcome, as Event.Label names it
//	ginlimit.near_limit [tier window scope]            admitted, with at most a tenth left
//	ginlimit.unknown_tier                              requests of a tier that is in no table
//	ginlimit.store.duration                            seconds that decisions wait for the store
//	ginlimit.store.errors [kind policy]                kinds as Event.ErrorKind names them
//	ginlimit.tokens, ginlimit.spend [tier state]       state reserved or settled; spend in currency units
//	ginlimit.kill_switch, ginlimit.breakers.open,
//	ginlimit.leases                                    of the limiters that New was given
//	ginlimit.rejection_cache.hits                      rejected without a call to the store
type Observer struct {
	decisions, nearLimit, unknownTier, storeErrors, tokens metric.Int64Counter

	spend metric.Float64Counter
	store metric.Float64Histogram
	stop  func() error
}

// New returns an observer with instruments of this provider; nil is the global provider. It shows the kill
// switch, circuit breakers, leases and cache hits of these limiters. The error is the provider's. It panics
// on a nil limiter.
func New(provider metric.MeterProvider, limiters ...*ginlimit.Limiter) (*Observer, error) {
	for _, l := range limiters {
		if l == nil {
			panic("otel: New: limiter is nil")
		}
	}
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	meter := provider.Meter(scopeName)
	var failed []error
	counter := func(name, unit, help string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(help))
		failed = append(failed, err)
		return c
	}
	o := &Observer{
		decisions:   counter("ginlimit.decisions", "{request}", "Requests by how they fared at a limiter."),
		nearLimit:   counter("ginlimit.near_limit", "{request}", "Admitted requests that left at most a tenth."),
		unknownTier: counter("ginlimit.unknown_tier", "{request}", "Requests of a tier that no table names."),
		storeErrors: counter("ginlimit.store.errors", "{request}", "Requests that the store could not decide."),
		tokens:      counter("ginlimit.tokens", "{token}", "Tokens that requests reserved and used."),
	}
	var err error
	o.spend, err = meter.Float64Counter("ginlimit.spend",
		metric.WithDescription("Money that requests reserved and used."))
	failed = append(failed, err)
	o.store, err = meter.Float64Histogram("ginlimit.store.duration", metric.WithUnit("s"),
		metric.WithDescription("Time that decisions wait for the store."),
		metric.WithExplicitBucketBoundaries(
			.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1))
	failed = append(failed, err)
	o.stop, err = watch(meter, limiters)
	if err = errors.Join(append(failed, err)...); err != nil {
		return nil, err
	}
	return o, nil
}

// watch reports the state of limiters whenever the SDK collects.
func watch(meter metric.Meter, limiters []*ginlimit.Limiter) (stop func() error, err error) {
	var failed []error
	gauge := func(name, unit, help string) metric.Int64ObservableGauge {
		g, err := meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(help))
		failed = append(failed, err)
		return g
	}
	killSwitch := gauge("ginlimit.kill_switch", "1", "1 while the kill switch of a limiter is on.")
	open := gauge("ginlimit.breakers.open", "{breaker}", "Circuit breakers that let nothing through but probes.")
	leases := gauge("ginlimit.leases", "{lease}", "Leases that requests in progress hold.")
	hits, err := meter.Int64ObservableCounter("ginlimit.rejection_cache.hits", metric.WithUnit("{request}"),
		metric.WithDescription("Requests rejected without asking the store."))
	failed = append(failed, err)
	registered, err := meter.RegisterCallback(func(_ context.Context, out metric.Observer) error {
		var disabled, opened, held, cached int64
		for _, l := range limiters {
			stats := l.Stats()
			if stats.Disabled {
				disabled = 1
			}
			opened += int64(stats.BreakersOpen)
			held += int64(stats.Leases)
			cached += int64(stats.CacheHits)
		}
		out.ObserveInt64(killSwitch, disabled)
		out.ObserveInt64(open, opened)
		out.ObserveInt64(leases, held)
		out.ObserveInt64(hits, cached)
		return nil
	}, killSwitch, open, leases, hits)
	if err = errors.Join(append(failed, err)...); err != nil {
		return nil, err
	}
	return registered.Unregister, nil
}

// Close stops reporting the state of the limiters.
func (o *Observer) Close() error { return o.stop() }

// Observe counts an event and marks the request's span.
func (o *Observer) Observe(ctx context.Context, e ginlimit.Event) {
	d, outcome, prefix := e.Decision, e.Label(), "ratelimit."
	if outcome != "" {
		o.decisions.Add(ctx, 1, metric.WithAttributes(append(of(e, ""), attribute.String("outcome", outcome))...))
	}
	if e.NearLimit() {
		o.nearLimit.Add(ctx, 1, metric.WithAttributes(of(e, "")...))
	}
	if e.UnknownTier && outcome != "" {
		o.unknownTier.Add(ctx, 1)
	}
	if e.Outcome == ginlimit.StoreError {
		o.storeErrors.Add(ctx, 1, metric.WithAttributes(
			attribute.String("kind", e.ErrorKind()), attribute.String("policy", e.Policy)))
	}

	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	if e.Outcome == ginlimit.StoreError {
		span.SetAttributes(attribute.String(prefix+"error", e.ErrorKind()))
	}
	if outcome == "" {
		return
	}
	span.SetAttributes(append(of(e, prefix), attribute.String(prefix+"outcome", outcome))...)
	if d.Name() != "" {
		span.SetAttributes(attribute.Int(prefix+"limit", d.Limit), attribute.Int(prefix+"remaining", d.Remaining))
	}
	if d.RetryAfter > 0 {
		span.SetAttributes(attribute.Float64(prefix+"retry_after", d.RetryAfter.Seconds()))
	}
}

// of returns the attributes of an event that have few values.
func of(e ginlimit.Event, prefix string) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String(prefix+"tier", string(e.Tier)),
		attribute.String(prefix+"window", e.Decision.Name()),
		attribute.String(prefix+"scope", e.Decision.Scope),
	}
}

// ObserveStore measures a decision.
func (o *Observer) ObserveStore(ctx context.Context, call ginlimit.StoreCall) {
	o.store.Record(ctx, call.Took.Seconds())
}

// ObserveSettlement counts what a request had reserved and what it used.
func (o *Observer) ObserveSettlement(ctx context.Context, s ginlimit.Settlement) {
	for state, u := range map[string]ginlimit.Usage{"reserved": s.Reserved, "settled": s.Used} {
		with := metric.WithAttributes(attribute.String("tier", string(s.Tier)), attribute.String("state", state))
		o.tokens.Add(ctx, int64(u.Tokens), with)
		o.spend.Add(ctx, units(u.Spend), with)
	}
}

// units are currency units.
func units(m tiers.Money) float64 { return float64(m) / 1_000_000 }
