package artifact

import (
	"errors"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Stats are counters of a store since it was opened.
type Stats struct {
	// IndexRequests were made to find versions: for indexes, also those that had not changed, lists of tags, and manifests.
	IndexRequests int64
	// Downloads are of archives, and Bytes what they brought.
	Downloads, Bytes int64
	// CacheHits are archives that were read from disk.
	CacheHits int64
	// CacheFailures are archives that were handed out but could not be kept, and damaged files that were removed.
	CacheFailures int64
	// StaleAnswers are versions that were given as they had been known, because the repository did not answer.
	StaleAnswers int64
}

type counts struct {
	indexRequests, downloads, bytes, cacheHits, cacheFailures, staleAnswers atomic.Int64
}

func (c *counts) stats() Stats {
	return Stats{
		IndexRequests: c.indexRequests.Load(), Downloads: c.downloads.Load(), Bytes: c.bytes.Load(),
		CacheHits: c.cacheHits.Load(), CacheFailures: c.cacheFailures.Load(), StaleAnswers: c.staleAnswers.Load(),
	}
}

func (c *counts) downloaded(data []byte) {
	c.downloads.Add(1)
	c.bytes.Add(int64(len(data)))
}

func (c *counts) register(metrics prometheus.Registerer) error {
	if metrics == nil {
		return nil
	}
	var failed error
	for _, counter := range []struct {
		name, help string
		value      *atomic.Int64
	}{
		{"index_requests_total", "Requests for indexes, lists of tags and manifests.", &c.indexRequests},
		{"downloads_total", "Packages downloaded.", &c.downloads},
		{"downloaded_bytes_total", "Size of all packages downloaded.", &c.bytes},
		{"cache_hits_total", "Packages read from the cache on disk.", &c.cacheHits},
		{"cache_failures_total", "Packages that could not be kept on disk, or were damaged there.", &c.cacheFailures},
		{"stale_answers_total", "Versions given as known before, because the repository did not answer.", &c.staleAnswers},
	} {
		failed = errors.Join(failed, metrics.Register(prometheus.NewCounterFunc(
			prometheus.CounterOpts{Namespace: "drover", Subsystem: "artifact", Name: counter.name, Help: counter.help},
			func() float64 { return float64(counter.value.Load()) },
		)))
	}
	return failed
}
