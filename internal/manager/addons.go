package manager

import (
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
			Dir: o.ChartCache, MaxBytes: int64(o.ChartCacheMiB) << 20, PlainHTTP: o.PlainHTTP, ResolveEvery: o.ResolveInterval, Trust: trust,
		},
		Limits:      operation.Limits{Total: o.Operations, PerCluster: o.ClusterSlots},
		WatchFilter: o.WatchFilter,
		Concurrency: o.Concurrency,
	}, err
}
