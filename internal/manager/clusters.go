package manager

import (
	"github.com/drover-dev/drover/internal/controllers/clusters"
	"github.com/drover-dev/drover/internal/registry"
)

func (o Options) clustersOptions(c *connections) clusters.Options {
	out := clusters.Options{
		Metadata: c.Metadata, Clusters: c.clusters, ManagementCluster: o.ManagementCluster, WatchFilter: o.WatchFilter, Concurrency: o.Concurrency, Metal: o.metalCredentials(),
	}
	if host := registryHost(o.RegistryURL); host != "" {
		out.Charts = "oci://" + host + "/" + registry.ChartsRepository
	}
	return out
}
