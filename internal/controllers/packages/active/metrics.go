package active

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/base/counter"
)

var (
	checks = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "drover_packages_bundle_checks_total", Help: "Checks for bundles by result: known, new, refused, failed.",
	}, []string{"result"})
	activations = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "drover_packages_bundle_activations_total", Help: "Bundles activated by the upgrade policy or because none was selected.",
	})
	copiedTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "drover_packages_credential_writes_total", Help: "Secrets with credentials written and deleted, locally and on clusters.",
	}, []string{"where", "action"})
	abandoned = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "drover_packages_credentials_abandoned_total", Help: "Unreachable clusters that credentials were left on.",
	})
)

func count(err error, created bool) {
	refused := (*refusedError)(nil)
	switch {
	case errors.As(err, &refused):
		checks.WithLabelValues("refused").Inc()
	case err != nil:
		checks.WithLabelValues("failed").Inc()
	case created:
		checks.WithLabelValues("new").Inc()
	default:
		checks.WithLabelValues("known").Inc()
	}
}

// states counts PackageBundleControllers by state when metrics are collected.
type states struct {
	reader client.Reader
	info   *prometheus.Desc
}

func newStates(reader client.Reader) *states {
	return &states{reader: reader, info: prometheus.NewDesc("drover_packages_controllers", "PackageBundleControllers by state.", []string{"state"}, nil)}
}

// Describe implements prometheus.Collector.
func (s *states) Describe(to chan<- *prometheus.Desc) { to <- s.info }

// Collect implements prometheus.Collector.
func (s *states) Collect(to chan<- prometheus.Metric) {
	list := &packagesv1.PackageBundleControllerList{}
	if err := s.reader.List(context.Background(), list, client.InNamespace(packagesv1.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return // the cache has not started, or has stopped
	}
	counts := map[packagesv1.BundleControllerStateEnum]int{
		packagesv1.ControllerActive: 0, packagesv1.ControllerDisconnected: 0, packagesv1.ControllerUpgradeAvailable: 0,
	}
	for i := range list.Items {
		if state := list.Items[i].Status.State; state != "" {
			counts[state]++
		}
	}
	for state, n := range counts {
		to <- prometheus.MustNewConstMetric(s.info, prometheus.GaugeValue, float64(n), string(state))
	}
}

func registerMetrics(reader client.Reader) error {
	return counter.Serve(metrics.Registry, checks, activations, copiedTotal, abandoned, newStates(reader))
}
