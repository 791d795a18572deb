package measure

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/base/counter"
	"github.com/drover-dev/drover/internal/base/tracing"
)

// scrapeTimeout bounds listing Clusters for a scrape.
const scrapeTimeout = 5 * time.Second

// durations is shared by all managers of a process.
var durations = newDurations()

// newDurations creates a series for each operation, because rules can't distinguish a missing
// series from zero.
func newDurations() *prometheus.HistogramVec {
	all := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "drover_cluster_stage_duration_seconds",
		Help: "Duration of the stages of operations on Clusters, until the condition that the stage is named after became true. Stage total is the whole operation.",
		// From simulated machines to servers that take half an hour to start.
		Buckets: []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200},
	}, []string{"operation", "stage"})
	for _, o := range []Operation{Create, Upgrade, Scale, Repair, Delete} {
		all.WithLabelValues(string(o), Total)
	}
	return all
}

// Reporter reports stages as metrics, log lines and spans.
type Reporter struct{ tracer trace.Tracer }

// NewReporter registers the metrics. The reader, usually the cache of the manager, counts Clusters.
func NewReporter(metrics prometheus.Registerer, reader client.Reader) (*Reporter, error) {
	if err := counter.Serve(metrics, durations, &clusterCollector{reader: reader}); err != nil {
		return nil, fmt.Errorf("registering metrics of clusters: %w", err)
	}
	return &Reporter{tracer: otel.Tracer("github.com/drover-dev/drover/internal/controllers/clusters")}, nil
}

// Report reports finished stages of a Cluster.
func (r *Reporter) Report(ctx context.Context, c *anywherev1.Cluster, ended ...Stage) {
	parent := tracing.Within(context.WithoutCancel(ctx), c.Annotations[anywherev1.TraceAnnotation])
	for _, s := range ended {
		took := s.End.Sub(s.Start)
		durations.WithLabelValues(string(s.Operation), s.Name).Observe(took.Seconds())
		ctrl.LoggerFrom(ctx).Info("Stage of a cluster ended", "operation", s.Operation, "phase", s.Name, "seconds", took.Seconds())
		_, span := r.tracer.Start(parent, "cluster "+string(s.Operation)+" "+s.Name, trace.WithTimestamp(s.Start),
			trace.WithAttributes(attribute.String("cluster.name", c.Name), attribute.String("cluster.namespace", c.Namespace)))
		span.End(trace.WithTimestamp(s.End))
	}
}

// clusterCollector counts Clusters for each scrape.
type clusterCollector struct{ reader client.Reader }

var inPhase = prometheus.NewDesc("drover_clusters", "Clusters by phase.", []string{"phase"}, nil)

// Describe implements prometheus.Collector.
func (*clusterCollector) Describe(ch chan<- *prometheus.Desc) { ch <- inPhase }

// Collect implements prometheus.Collector. It includes phases without Clusters, because rules can't
// distinguish a missing series from zero.
func (c *clusterCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	all := &anywherev1.ClusterList{}
	if err := c.reader.List(ctx, all); err != nil {
		ch <- prometheus.NewInvalidMetric(inPhase, err)
		return
	}
	count := map[string]int{}
	for i := range all.Items {
		count[Phase(&all.Items[i])]++
	}
	for _, phase := range Phases {
		ch <- prometheus.MustNewConstMetric(inPhase, prometheus.GaugeValue, float64(count[phase]), phase)
	}
}
