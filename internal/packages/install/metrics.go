package install

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// written counts what was done to HelmReleaseProxies. A quiet fleet leaves it alone.
var written = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "drover_packages_release_writes_total", Help: "HelmReleaseProxies created, updated and deleted for Packages.",
}, []string{"action"})

var byState = prometheus.NewDesc("drover_packages", "Packages by their state.", []string{"state"}, nil)

// stateMetrics tells how many Packages are in each state.
type stateMetrics struct{ *memory }

func (stateMetrics) Describe(out chan<- *prometheus.Desc) { out <- byState }

func (s stateMetrics) Collect(out chan<- prometheus.Metric) {
	for state, n := range s.counts() {
		out <- prometheus.MustNewConstMetric(byState, prometheus.GaugeValue, float64(n), string(state))
	}
}

// registerMetrics makes them be served; a second manager in one process shares them.
func (c *Controller) registerMetrics() error {
	for _, m := range []prometheus.Collector{written, stateMetrics{&c.memory}} {
		err := metrics.Registry.Register(m)
		if there := new(prometheus.AlreadyRegisteredError); err != nil && !errors.As(err, there) {
			return err
		}
	}
	return nil
}
