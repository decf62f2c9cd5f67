package prom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/gin-tiers/ratelimit/ginlimit"
)

// standing describes the metrics of the present state of limiters.
type standing struct {
	killSwitch, breakers, breakersOpen, leases, cacheHits, groupSize *prometheus.Desc
}

func newStanding() standing {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("ginlimit_"+name, help, nil, nil)
	}
	return standing{
		killSwitch:   desc("kill_switch", "1 while the kill switch of a limiter is on: nobody is limited."),
		breakers:     desc("breakers", "Circuit breakers of Redis nodes."),
		breakersOpen: desc("breakers_open", "Circuit breakers that let nothing through but probes."),
		leases:       desc("leases", "Leases that requests in progress hold."),
		cacheHits:    desc("rejection_cache_hits_total", "Requests rejected without asking the store."),
		groupSize:    desc("group_size", "Decisions that had waited and were sent to Redis together."),
	}
}

func (s standing) describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		s.killSwitch, s.breakers, s.breakersOpen, s.leases, s.cacheHits, s.groupSize,
	} {
		out <- desc
	}
}

func (s standing) collect(out chan<- prometheus.Metric, limiters []*ginlimit.Limiter) {
	var disabled, breakers, open, leases, hits float64
	var groups []uint64
	for _, l := range limiters {
		stats := l.Stats()
		if stats.Disabled {
			disabled = 1
		}
		breakers += float64(stats.Breakers)
		open += float64(stats.BreakersOpen)
		leases += float64(stats.Leases)
		hits += float64(stats.CacheHits)
		groups = append(groups, make([]uint64, max(0, len(stats.Groups)-len(groups)))...)
		for n, sent := range stats.Groups {
			groups[n] += sent
		}
	}
	for desc, value := range map[*prometheus.Desc]float64{
		s.killSwitch: disabled, s.breakers: breakers, s.breakersOpen: open, s.leases: leases,
	} {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value)
	}
	out <- prometheus.MustNewConstMetric(s.cacheHits, prometheus.CounterValue, hits)
	out <- histogram(s.groupSize, groups)
}

// histogram is the histogram of sizes; each size was sent sent[size] times.
func histogram(desc *prometheus.Desc, sent []uint64) prometheus.Metric {
	buckets := map[float64]uint64{1: 0, 2: 0, 4: 0, 8: 0, 16: 0, 32: 0}
	var count uint64
	var sum float64
	for size, times := range sent {
		count += times
		sum += float64(size) * float64(times)
		for bound := range buckets {
			if float64(size) <= bound {
				buckets[bound] += times
			}
		}
	}
	return prometheus.MustNewConstHistogram(desc, count, sum, buckets)
}
