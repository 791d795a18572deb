package measure

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

var born = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) metav1.Time {
	return metav1.NewTime(born.Add(time.Duration(seconds) * time.Second))
}

// with returns a Cluster with conditions, given as type, status, reason and the second of the
// change.
func with(reconciled int64, conditions ...metav1.Condition) *anywherev1.Cluster {
	c := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "billy", Namespace: "herd", Generation: 1, CreationTimestamp: at(0)}}
	c.Status.ReconciledGeneration, c.Status.ObservedGeneration, c.Status.Conditions = reconciled, 1, conditions
	return c
}

func condition(kind string, status metav1.ConditionStatus, reason string, second int) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, LastTransitionTime: at(second)}
}

func TestStagesEndWithConditions(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	for _, tc := range []struct {
		name          string
		before, after *anywherev1.Cluster
		want          []Stage
	}{
		{
			"a new cluster counts from its creation", with(0),
			with(0, condition(anywherev1.ControlPlaneReady, yes, "", 20), condition(anywherev1.ControlPlaneInitialized, yes, "", 10), condition(anywherev1.WorkersReady, no, "", 5)),
			[]Stage{{Create, "control-plane-initialized", born, at(10).Time}, {Create, "control-plane", born, at(20).Time}},
		},
		{
			"a temporarily False condition does not shorten creation", with(0, condition(anywherev1.WorkersReady, no, anywherev1.ScalingUpReason, 5)),
			with(1, condition(anywherev1.WorkersReady, yes, "", 30), condition(anywherev1.Ready, yes, "", 30)),
			[]Stage{{Create, "workers", born, at(30).Time}, {Create, Total, born, at(30).Time}},
		},
		{
			"an upgrade counts from when the condition was lost", with(1, condition(anywherev1.ControlPlaneReady, no, anywherev1.RollingUpgradeInProgressReason, 100)),
			with(2, condition(anywherev1.ControlPlaneReady, yes, "", 160)),
			[]Stage{{Upgrade, "control-plane", at(100).Time, at(160).Time}},
		},
		{
			"scaling", with(1, condition(anywherev1.WorkersReady, no, anywherev1.ScalingDownReason, 100)),
			with(2, condition(anywherev1.WorkersReady, yes, "", 101)),
			[]Stage{{Scale, "workers", at(100).Time, at(101).Time}},
		},
		{
			"something broke", with(1, condition(anywherev1.WorkersReady, metav1.ConditionUnknown, anywherev1.NodesNotReadyReason, 100)),
			with(1, condition(anywherev1.WorkersReady, yes, "", 103)),
			[]Stage{{Repair, "workers", at(100).Time, at(103).Time}},
		},
		{"nothing changed", with(1, condition(anywherev1.Ready, yes, "", 9)), with(1, condition(anywherev1.Ready, yes, "", 9)), nil},
		{"it got worse", with(1, condition(anywherev1.Ready, yes, "", 9)), with(1, condition(anywherev1.Ready, no, "", 10)), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, Ended(tc.before, tc.after)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestEveryPhaseCanBeReached(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	edit := func(c *anywherev1.Cluster, change func(*anywherev1.Cluster)) *anywherev1.Cluster { change(c); return c }
	ready := condition(anywherev1.Ready, yes, "", 9)
	seen := map[string]bool{}
	for _, tc := range []struct {
		want string
		c    *anywherev1.Cluster
	}{
		{"Creating", with(0)},
		{"Creating", with(0, condition(anywherev1.Ready, no, "", 3))},
		{"Waiting", with(0, condition(anywherev1.CapacityReserved, no, anywherev1.WaitingForCapacityReason, 3))},
		{"Ready", with(1, ready)},
		{"NotReady", edit(with(1, ready), func(c *anywherev1.Cluster) { c.Generation = 2 })},
		{"NotReady", with(1)},
		{"Upgrading", with(1, condition(anywherev1.Ready, no, anywherev1.RollingUpgradeInProgressReason, 9))},
		{"Scaling", with(1, condition(anywherev1.Ready, no, anywherev1.ScalingUpReason, 9))},
		{"Failed", edit(with(1, ready), func(c *anywherev1.Cluster) { c.Status.FailureReason = ptr.To(anywherev1.ClusterInvalidReason) })},
		{"Paused", edit(with(1, ready), func(c *anywherev1.Cluster) { c.Annotations = map[string]string{anywherev1.PausedAnnotation: "true"} })},
		{"Deleting", edit(with(1, ready), func(c *anywherev1.Cluster) { c.DeletionTimestamp = ptr.To(at(50)) })},
	} {
		if got := Phase(tc.c); got != tc.want {
			t.Errorf("%+v is %s, want %s", tc.c, got, tc.want)
		}
		seen[tc.want] = true
	}
	for _, phase := range Phases {
		if !seen[phase] {
			t.Errorf("no cluster is ever %s", phase)
		}
	}
}

// herd is a reader with some Clusters.
type herd []anywherev1.Cluster

func (herd) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return nil
}

func (h herd) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*anywherev1.ClusterList).Items = slices.Clone(h)
	return nil
}

func TestMetricsDoNotGrowWithTheFleet(t *testing.T) {
	var fleet herd
	for range 1000 {
		fleet = append(fleet, *with(0))
	}
	fleet = append(fleet, *with(1, condition(anywherev1.Ready, metav1.ConditionTrue, "", 9)))
	metrics := prometheus.NewPedanticRegistry()
	r, err := NewReporter(metrics, fleet)
	if err != nil {
		t.Fatal(err)
	}
	durations.Reset()
	for i := range fleet {
		r.Report(t.Context(), &fleet[i], Stage{Create, Total, born, at(30).Time}, Stage{Create, "workers", born, at(30).Time})
	}
	n, err := testutil.GatherAndCount(metrics)
	if want := len(Phases) + 2; err != nil || n != want { // the total and the workers of one operation
		t.Errorf("%v: there are %d series, want %d", err, n, want)
	}
	got := map[string]float64{}
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "drover_clusters" {
				got[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
			} else if sum := m.GetHistogram().GetSampleSum(); sum != 30*1001 {
				t.Errorf("%v took %f s in all", m.GetLabel(), m.GetHistogram().GetSampleSum())
			}
		}
	}
	want := map[string]float64{"Creating": 1000, "Deleting": 0, "Failed": 0, "NotReady": 0, "Paused": 0, "Ready": 1, "Scaling": 0, "Upgrading": 0, "Waiting": 0}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestStagesBelongToTheTraceOfTheCommand(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)))
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	r, err := NewReporter(prometheus.NewRegistry(), herd{})
	if err != nil {
		t.Fatal(err)
	}
	c := with(1)
	c.Annotations = map[string]string{anywherev1.TraceAnnotation: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
	r.Report(t.Context(), c, Gone(&anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: ptr.To(at(3))}}, at(8).Time))
	c.Annotations[anywherev1.TraceAnnotation] = "garbage"
	r.Report(t.Context(), c, Stage{Scale, "workers", at(1).Time, at(2).Time})
	ended := spans.Ended()
	if len(ended) != 2 {
		t.Fatalf("%d spans", len(ended))
	}
	one := ended[0]
	if one.SpanContext().TraceID().String() != "0af7651916cd43dd8448eb211c80319c" || one.Parent().SpanID().String() != "b7ad6b7169203331" {
		t.Errorf("the span is of trace %s, below %s", one.SpanContext().TraceID(), one.Parent().SpanID())
	}
	if one.Name() != "cluster delete total" || one.EndTime().Sub(one.StartTime()) != 5*time.Second {
		t.Errorf("span %q took %s", one.Name(), one.EndTime().Sub(one.StartTime()))
	}
	if ended[1].Parent().IsValid() {
		t.Error("got a parent from an invalid annotation, want none")
	}
}
