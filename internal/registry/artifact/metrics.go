package artifact

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/drover-dev/drover/internal/base/counter"
)

// Stats are counters of a store since it was opened.
type Stats struct {
	// IndexRequests counts requests for indexes (including unchanged ones), lists of tags and
	// manifests.
	IndexRequests int64
	// Downloads counts downloads of archives, and Bytes their size.
	Downloads, Bytes int64
	// CacheHits counts archives that were read from disk.
	CacheHits int64
	// CacheFailures counts archives that could not be cached, and damaged files that were deleted.
	CacheFailures int64
	// StaleAnswers counts versions from the cache that were used because the repository was
	// unreachable.
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
	return counter.Register(metrics, "artifact",
		counter.Counter{Name: "index_requests_total", Help: "Requests for indexes, lists of tags and manifests.", Value: &c.indexRequests},
		counter.Counter{Name: "downloads_total", Help: "Packages downloaded.", Value: &c.downloads},
		counter.Counter{Name: "downloaded_bytes_total", Help: "Size of all packages downloaded.", Value: &c.bytes},
		counter.Counter{Name: "cache_hits_total", Help: "Packages read from the cache on disk.", Value: &c.cacheHits},
		counter.Counter{Name: "cache_failures_total", Help: "Packages that could not be cached on disk, or were damaged there.", Value: &c.cacheFailures},
		counter.Counter{Name: "stale_answers_total", Help: "Cached versions used because the repository was unreachable.", Value: &c.staleAnswers},
	)
}
