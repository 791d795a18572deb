package install

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/base/counter"
)

// written counts writes to HelmReleaseProxies. It is constant on a quiet fleet.
var written = counter.ByAction("drover_packages_release_writes_total", "HelmReleaseProxies created, updated and deleted for Packages.",
	"create", "update", "delete")

var byState = prometheus.NewDesc("drover_packages", "Packages by their state.", []string{"state"}, nil)

var states = []packagesv1.StateEnum{
	packagesv1.StateInitializing, packagesv1.StateInstalling, packagesv1.StateInstallingDependencies, packagesv1.StateInstalled,
	packagesv1.StateUpdating, packagesv1.StateUninstalling, packagesv1.StateUnknown,
}

// stateMetrics exports the number of Packages in each state.
type stateMetrics struct{ *memory }

func (stateMetrics) Describe(out chan<- *prometheus.Desc) { out <- byState }

// Collect exports all states, including those without Packages, so that alerts can distinguish zero
// from missing.
func (s stateMetrics) Collect(out chan<- prometheus.Metric) {
	counts := s.counts()
	for _, state := range states {
		out <- prometheus.MustNewConstMetric(byState, prometheus.GaugeValue, float64(counts[state]), string(state))
	}
}

func (c *Controller) registerMetrics() error {
	return counter.Serve(metrics.Registry, written, stateMetrics{&c.memory})
}
