package chart

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/model/addons/plan"
)

// TestStatusOfALargeFleetIsAccepted uses 700 clusters with the longest names, a long message and a
// problem each.
func TestStatusOfALargeFleetIsAccepted(t *testing.T) {
	for name, fill := range map[string]func(*facts, *addonsv1.HelmReleaseProxy, int){
		"all is well": func(*facts, *addonsv1.HelmReleaseProxy, int) {},
		"nothing is well": func(f *facts, r *addonsv1.HelmReleaseProxy, i int) {
			conditions.Set(r, metav1.Condition{
				Type: clusterv1.ReadyCondition, Status: metav1.ConditionFalse, Reason: "X", Message: fmt.Sprint(i, strings.Repeat(" words", 5000)),
			})
			f.addProblem(problem{r.Spec.ClusterRef.Name, addonsv1.ValueParsingFailedReason, errors.New(strings.Repeat("ä", 20000)), true})
		},
		"all are reinstalled": func(f *facts, r *addonsv1.HelmReleaseProxy, _ int) {
			f.reinstalling = append(f.reinstalling, r.Spec.ClusterRef.Name)
		},
		"all wait for their wave": func(f *facts, r *addonsv1.HelmReleaseProxy, _ int) {
			f.waiting = append(f.waiting, r.Spec.ClusterRef.Name)
		},
		"none is updated": func(_ *facts, r *addonsv1.HelmReleaseProxy, _ int) { r.Generation++ },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s := newScope(reconcile.NewVisit(w.Client, w.chart(nil)))
			for i := range 700 {
				cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: fmt.Sprintf("%s-%03d", strings.Repeat("x", 59), i)}}
				r := &addonsv1.HelmReleaseProxy{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%03d", strings.Repeat("y", 59), i)}}
				r.Spec.ClusterRef.Name = cluster.Name
				conditions.Set(r, metav1.Condition{Type: clusterv1.ReadyCondition, Status: metav1.ConditionTrue, Reason: "X"})
				s.clusters = append(s.clusters, cluster)
				s.addAfter(r)
				fill(&s.facts, r, i)
			}
			s.setStatus()
			lint(t, s.chart)
			w.must(s.Save(t.Context()))
			if got := conditions.GetMessage(s.chart, addonsv1.ProxiesReady); !strings.Contains(got, "(sources: HelmReleaseProxy/") || !strings.HasSuffix(got, " and 690 more)") {
				t.Errorf("message is %q", got)
			}
		})
	}
}

// BenchmarkFleet reconciles 1,000 clusters: without a change, and with all values rendered.
func BenchmarkFleet(b *testing.B) {
	s := newScope(reconcile.NewVisit(nil, &addonsv1.HelmChartProxy{}))
	s.chart.Spec.ValuesTemplate = "name: {{ .Cluster.metadata.name }}"
	c := &Controller{}
	s.program = c.programs.get(s.chart).program
	ctx := ctrl.LoggerInto(b.Context(), ctrl.Log)
	for i := range 1000 {
		t := &target{cluster: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i))}}}
		t.change, _ = c.evaluate(ctx, s, t, s.program)
		t.release = t.change.Object
		s.targets = append(s.targets, t)
	}
	pass := func(b *testing.B) {
		for _, t := range s.targets {
			if m, p := c.evaluate(ctx, s, t, s.program); p != nil || m.Verb != plan.Keep {
				b.Fatalf("%+v %+v", m, p)
			}
		}
	}
	pass(b)
	for name, forget := range map[string]bool{"quiet": false, "rendered": true} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if forget {
					c.settled.forget(s.Key())
				}
				pass(b)
			}
		})
	}
}
