package manager

import (
	"cmp"
	"os"
	"path/filepath"

	"github.com/drover-dev/drover/internal/controllers/addons"
	"github.com/drover-dev/drover/internal/controllers/operation"
	"github.com/drover-dev/drover/internal/registry/artifact"
)

func (o Options) addonsOptions(c *connections) addons.Options {
	return addons.Options{
		Workloads:    c.Workloads,
		Metadata:     c.Metadata,
		Clusters:     c.clusters,
		Listen:       c.listen,
		Packages:     c.charts,
		Policy:       c.policy,
		PlainHTTP:    o.PlainHTTP,
		ResolveEvery: o.ResolveInterval,
		Limits:       operation.Limits{Total: o.Operations, PerCluster: o.ClusterSlots},
		WatchFilter:  o.WatchFilter,
		Concurrency:  o.Concurrency,
	}
}

// chartOptions configure the chart cache and the allowed repositories.
func (o Options) chartOptions(trust map[string]artifact.Access) artifact.Options {
	return artifact.Options{
		Dir: cmp.Or(o.ChartCache, defaultChartCache()), MaxBytes: int64(o.ChartCacheMiB) << 20, PlainHTTP: o.PlainHTTP, ResolveEvery: o.ResolveInterval, Trust: trust,
		Mirrors: o.PackageMirrors,
	}
}

// defaultChartCache returns the user's cache directory, or its own directory in a container without
// one.
func defaultChartCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "drover", "charts")
}
