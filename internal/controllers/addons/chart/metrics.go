package chart

import (
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/drover-dev/drover/internal/base/counter"
	"github.com/drover-dev/drover/internal/model/addons/plan"
)

// written counts writes of HelmReleaseProxies. It does not change on a quiet fleet.
var written = counter.ByAction("drover_addons_release_writes_total", "HelmReleaseProxies created, updated and deleted for HelmChartProxies.",
	string(plan.Create), string(plan.Update), "delete")

func registerMetrics() error { return counter.Serve(metrics.Registry, written) }
