package chart

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// written counts what was done to HelmReleaseProxies. A quiet fleet leaves it alone.
var written = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "drover_addons_release_writes_total", Help: "HelmReleaseProxies created, updated and deleted for HelmChartProxies.",
}, []string{"action"})

// registerMetrics makes them be served; a second manager in one process shares them.
func registerMetrics() error {
	err := metrics.Registry.Register(written)
	if _, there := err.(prometheus.AlreadyRegisteredError); there { //nolint:errorlint // the registry returns it as it is
		return nil
	}
	return err
}
