// Package prom exports the decisions of limiters as Prometheus metrics. No label holds a user or a key, so
// the number of series depends only on tiers, windows and scopes. Its folder has alert rules (alerts.yaml)
// and a Grafana dashboard (dashboard.json).
package prom

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/tiers"
)

// Collector is a ginlimit.Observer for any number of mounts, and a prometheus.Collector:
//
//	metrics := prom.New(limiter)
//	prometheus.MustRegister(metrics)
//	router.Use(ginlimit.New(limiter, resolver, ginlimit.WithObserver(metrics)))
//
// It is safe for concurrent use. Its metrics, all for this process:
//
//	ginlimit_decisions_total{tier,window,scope,outcome}       admitted, rejected, denied, upstream_full,
//	                                                          shadow_rejected, bypassed, failed_open,
//	                                                          failed_closed
//	ginlimit_fallback_decisions_total{tier,outcome}           those that FailLocal's limiter made
//	ginlimit_near_limit_admissions_total{tier,window,scope}   admitted, with at most a tenth left
//	ginlimit_unknown_tier_total                               requests of a tier that is in no table
//	ginlimit_store_seconds                                    histogram: how long decisions wait for the store
//	ginlimit_store_errors_total{kind,policy}                  kinds as Event.ErrorKind names them
//	ginlimit_{tokens,spend}_{reserved,settled}_total{tier}    spend in currency units
//	ginlimit_kill_switch, _breakers, _breakers_open, _leases  of the limiters that New was given
//	ginlimit_rejection_cache_hits_total                       rejected without a call to the store
//	ginlimit_group_size                                       histogram: waiting decisions sent together
type Collector struct {
	limiters []*ginlimit.Limiter

	decisions, fallback, nearLimit, storeErrors *prometheus.CounterVec

	tokensReserved, tokensSettled, spendReserved, spendSettled *prometheus.CounterVec

	unknownTier prometheus.Counter
	store       prometheus.Histogram
	own         []prometheus.Collector // all of the above
	standing    standing
}

// New returns a collector. It shows the kill switch, circuit breakers, leases, cache and groups of these
// limiters. The scopes of one limiter share them, so pass one of them. It panics on nil.
func New(limiters ...*ginlimit.Limiter) *Collector {
	for _, l := range limiters {
		if l == nil {
			panic("prom: New: limiter is nil")
		}
	}
	c := &Collector{limiters: limiters, standing: newStanding()}
	c.decisions = c.counters("decisions_total", "Requests by how they fared at a limiter.",
		"tier", "window", "scope", "outcome")
	c.fallback = c.counters("fallback_decisions_total", "Decisions made by the limiter of FailLocal.",
		"tier", "outcome")
	c.nearLimit = c.counters("near_limit_admissions_total",
		"Admitted requests that left at most a tenth of their tightest budget.", "tier", "window", "scope")
	c.storeErrors = c.counters("store_errors_total", "Requests that the store could not decide.",
		"kind", "policy")
	c.tokensReserved = c.counters("tokens_reserved_total", "Tokens that admitted requests reserved.", "tier")
	c.tokensSettled = c.counters("tokens_settled_total", "Tokens that finished requests used.", "tier")
	c.spendReserved = c.counters("spend_reserved_total", "Money that admitted requests reserved.", "tier")
	c.spendSettled = c.counters("spend_settled_total", "Money that finished requests used.", "tier")
	c.unknownTier = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "ginlimit_unknown_tier_total", Help: "Requests of a tier that no table names.",
	})
	c.store = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "ginlimit_store_seconds",
		Help:    "Time that decisions wait for the store.",
		Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1},
	})
	c.own = append(c.own, c.unknownTier, c.store)
	return c
}

func (c *Collector) counters(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ginlimit_" + name, Help: help}, labels)
	c.own = append(c.own, v)
	return v
}

// Observe counts an event.
func (c *Collector) Observe(_ context.Context, e ginlimit.Event) {
	tier, window, scope := string(e.Tier), e.Decision.Name(), e.Decision.Scope
	if outcome := e.Label(); outcome != "" {
		c.decisions.WithLabelValues(tier, window, scope, outcome).Inc()
		if e.Local {
			c.fallback.WithLabelValues(tier, outcome).Inc()
		}
	}
	if e.NearLimit() {
		c.nearLimit.WithLabelValues(tier, window, scope).Inc()
	}
	if e.Outcome == ginlimit.StoreError {
		c.storeErrors.WithLabelValues(e.ErrorKind(), e.Policy).Inc()
	}
	if e.UnknownTier && e.Label() != "" {
		c.unknownTier.Inc()
	}
}

// ObserveStore measures a decision.
func (c *Collector) ObserveStore(_ context.Context, call ginlimit.StoreCall) {
	c.store.Observe(call.Took.Seconds())
}

// ObserveSettlement counts what a request had reserved and what it used.
func (c *Collector) ObserveSettlement(_ context.Context, s ginlimit.Settlement) {
	tier := string(s.Tier)
	c.tokensReserved.WithLabelValues(tier).Add(float64(s.Reserved.Tokens))
	c.tokensSettled.WithLabelValues(tier).Add(float64(s.Used.Tokens))
	c.spendReserved.WithLabelValues(tier).Add(units(s.Reserved.Spend))
	c.spendSettled.WithLabelValues(tier).Add(units(s.Used.Spend))
}

// units are currency units.
func units(m tiers.Money) float64 { return float64(m) / 1_000_000 }

// Describe sends the descriptions of all metrics.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, each := range c.own {
		each.Describe(out)
	}
	c.standing.describe(out)
}

// Collect sends all metrics. It does not call Redis.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	for _, each := range c.own {
		each.Collect(out)
	}
	c.standing.collect(out, c.limiters)
}
