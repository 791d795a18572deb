package source

import (
	"errors"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Stats are counters since the start.
type Stats struct {
	// Looks are questions for the digest of a tag, Downloads of them brought something new, and Failures brought nothing.
	Looks, Downloads, Failures int64
}

// Stats says what was done so far.
func (b *Bundles) Stats() Stats {
	return Stats{Looks: b.counts.looks.Load(), Downloads: b.counts.downloads.Load(), Failures: b.counts.failures.Load()}
}

type counts struct{ looks, downloads, failures atomic.Int64 }

func (c *counts) register(metrics prometheus.Registerer) error {
	if metrics == nil {
		return nil
	}
	var failed error
	for _, counter := range []struct {
		name, help string
		value      *atomic.Int64
	}{
		{"looks_total", "Questions to registries which bundle a tag stands for.", &c.looks},
		{"downloads_total", "Bundles downloaded.", &c.downloads},
		{"failures_total", "Questions that no registry answered with a bundle.", &c.failures},
	} {
		failed = errors.Join(failed, metrics.Register(prometheus.NewCounterFunc(
			prometheus.CounterOpts{Namespace: "drover", Subsystem: "packages_bundle", Name: counter.name, Help: counter.help},
			func() float64 { return float64(counter.value.Load()) },
		)))
	}
	return failed
}
