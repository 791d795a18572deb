package source

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/drover-dev/drover/internal/base/counter"
)

// Stats are counters since the start.
type Stats struct {
	// Looks counts requests for the digest of a tag, Downloads those that led to a download, and
	// Failures those that failed.
	Looks, Downloads, Failures int64
}

// Stats returns the counters.
func (b *Bundles) Stats() Stats {
	return Stats{Looks: b.counts.looks.Load(), Downloads: b.counts.downloads.Load(), Failures: b.counts.failures.Load()}
}

type counts struct{ looks, downloads, failures atomic.Int64 }

func (c *counts) register(metrics prometheus.Registerer) error {
	return counter.Register(metrics, "packages_bundle",
		counter.Counter{Name: "looks_total", Help: "Requests to registries for the digest of a bundle's tag.", Value: &c.looks},
		counter.Counter{Name: "downloads_total", Help: "Bundles downloaded.", Value: &c.downloads},
		counter.Counter{Name: "failures_total", Help: "Requests for bundles that failed in every registry.", Value: &c.failures},
	)
}
