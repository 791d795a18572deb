package source

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/drover-dev/drover/internal/base/counter"
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
	return counter.Register(metrics, "packages_bundle",
		counter.Counter{Name: "looks_total", Help: "Questions to registries which bundle a tag stands for.", Value: &c.looks},
		counter.Counter{Name: "downloads_total", Help: "Bundles downloaded.", Value: &c.downloads},
		counter.Counter{Name: "failures_total", Help: "Questions that no registry answered with a bundle.", Value: &c.failures},
	)
}
