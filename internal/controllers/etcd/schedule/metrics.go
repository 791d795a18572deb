package schedule

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
)

// scrapeTimeout bounds listing schedules for a scrape.
const scrapeTimeout = 5 * time.Second

// States of schedules.
const (
	stateReady     = "Ready"
	stateFailing   = "Failing"
	stateSuspended = "Suspended"
)

var (
	inState = prometheus.NewDesc("drover_etcd_snapshot_schedules", "Schedules of etcd snapshots by state.", []string{"state"}, nil)
	oldest  = prometheus.NewDesc("drover_etcd_snapshot_oldest_timestamp_seconds",
		"When the last snapshot was taken of the cluster for which that is longest ago, among schedules that are not suspended.", nil, nil)
)

// collector counts schedules for each scrape. The number of series does not grow with the fleet.
type collector struct{ reader client.Reader }

// Describe implements prometheus.Collector.
func (collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- inState
	ch <- oldest
}

// Collect implements prometheus.Collector. Without schedules, no snapshot is the oldest.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	all := &droverv1.EtcdSnapshotScheduleList{}
	if err := c.reader.List(ctx, all); err != nil {
		ch <- prometheus.NewInvalidMetric(inState, err)
		return
	}
	count := map[string]int{}
	var longestAgo time.Time
	for i := range all.Items {
		s := &all.Items[i]
		state := stateOf(s)
		count[state]++
		if at := savedOr(s); state != stateSuspended && (longestAgo.IsZero() || at.Before(longestAgo)) {
			longestAgo = at
		}
	}
	for _, state := range []string{stateReady, stateFailing, stateSuspended} {
		ch <- prometheus.MustNewConstMetric(inState, prometheus.GaugeValue, float64(count[state]), state)
	}
	if !longestAgo.IsZero() {
		ch <- prometheus.MustNewConstMetric(oldest, prometheus.GaugeValue, float64(longestAgo.Unix()))
	}
}

// savedOr returns when the last snapshot was taken, or when the schedule was created.
func savedOr(s *droverv1.EtcdSnapshotSchedule) time.Time {
	if last := s.Status.LastSnapshot; last != nil {
		return last.Time.Time
	}
	return s.CreationTimestamp.Time
}

func stateOf(s *droverv1.EtcdSnapshotSchedule) string {
	ready := meta.FindStatusCondition(s.Status.Conditions, droverv1.SnapshotsReady)
	switch {
	case s.Spec.Suspend:
		return stateSuspended
	case ready != nil && ready.Status == metav1.ConditionFalse:
		return stateFailing
	default:
		return stateReady
	}
}
