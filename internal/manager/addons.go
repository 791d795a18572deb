package manager

import (
	"cmp"
	"os"
	"path/filepath"

	"github.com/drover-dev/drover/internal/addons"
	"github.com/drover-dev/drover/internal/addons/operation"
	"github.com/drover-dev/drover/internal/artifact"
	"github.com/drover-dev/drover/internal/capi"
)

func (o Options) addonsOptions(shared capi.Shared) (addons.Options, error) {
	trust, err := artifact.TrustRegistry(o.RegistryURL, o.RegistryCA)
	return addons.Options{
		Workloads: shared.Workloads,
		Metadata:  shared.Metadata,
		Packages: artifact.Options{
			Dir: cmp.Or(o.ChartCache, defaultChartCache()), MaxBytes: int64(o.ChartCacheMiB) << 20, PlainHTTP: o.PlainHTTP, ResolveEvery: o.ResolveInterval, Trust: trust,
		},
		Limits:      operation.Limits{Total: o.Operations, PerCluster: o.ClusterSlots},
		WatchFilter: o.WatchFilter,
		Concurrency: o.Concurrency,
	}, err
}

// defaultChartCache is the user's, or in a container without one, a directory of its own.
func defaultChartCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "drover", "charts")
}
