package chart

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

// managed is a world whose controller runs in a manager, with cache, indexes and watches.
func managed(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	server := kubetest.SharedWithoutWebhooks(t)
	mgr, err := reconcile.NewManager(server.Config, ctrl.Options{
		Scheme: w.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, NewClient: lettingGo,
		Client: ctrlclient.Options{Cache: &ctrlclient.CacheOptions{Unstructured: true}},
		Cache:  ctrlcache.Options{DefaultNamespaces: map[string]ctrlcache.Config{w.ns: {}}}, // other tests have theirs
	})
	w.must(err)
	c := &Controller{Client: mgr.GetClient(), Events: w.events, Clock: clock.RealClock{}}
	w.must(c.SetupWithManager(t.Context(), mgr, controller.Options{SkipNameValidation: ptr.To(true)}))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	})
	return w
}

// await waits until a condition is met.
func (w *world) await(what string, so func() bool) {
	w.Helper()
	err := wait.PollUntilContextTimeout(w.Context(), 20*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		return so(), nil
	})
	if err != nil {
		w.Fatalf("%s: %v; releases: %v", what, err, w.all())
	}
}

// TestControllerReconcilesOnlyRelevantChanges changes everything that a release depends on, one
// after the other.
func TestControllerReconcilesOnlyRelevantChanges(t *testing.T) {
	w := managed(t)
	a := w.cluster("a", "cni=cilium")
	w.cluster("b")
	broken := w.chart(func(c *addonsv1.HelmChartProxy) {
		c.Name = "broken"
		c.Spec.ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Like"}}
	})
	w.chart(func(c *addonsv1.HelmChartProxy) {
		c.Spec.ClusterSelector = metav1.LabelSelector{MatchLabels: map[string]string{"cni": "cilium"}}
		c.Spec.ValuesTemplate = "zone: {{ .Cluster.metadata.labels.zone }}\n{{ with .InfraCluster.spec }}metro: {{ .metro }}{{ end }}"
	})
	has := func(values string) func() bool {
		return func() bool { r := w.all()["a"]; return r != nil && r.Spec.Values == values }
	}
	w.await("a release", has("zone: <no value>\n"))
	w.must(w.Delete(t.Context(), broken))

	patch := func(o ctrlclient.Object, change func()) {
		t.Helper()
		before := o.DeepCopyObject().(ctrlclient.Object)
		change()
		w.must(w.Patch(t.Context(), o, ctrlclient.MergeFrom(before)))
	}
	patch(a, func() { a.Labels["zone"] = "z" })
	w.await("a changed label", has("zone: z\n"))
	patch(a, func() {
		a.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "PacketCluster", Name: "a"}
	})
	w.await("word of the missing object", func() bool {
		c := &addonsv1.HelmChartProxy{}
		w.must(w.Get(t.Context(), w.key(), c))
		return strings.Contains(condition(c, addonsv1.SpecsUpToDate), "waiting for ")
	})
	infra := &infrav1.PacketCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "a", Labels: map[string]string{clusterv1.ClusterNameLabel: "a"}},
		Spec:       infrav1.PacketClusterSpec{ProjectID: "p", Metro: "da"},
	}
	w.must(w.Create(t.Context(), infra))
	w.await("an object that came late", has("zone: z\nmetro: da"))
	patch(infra, func() { infra.Spec.Metro = "sv" })
	w.await("an object that has changed", has("zone: z\nmetro: sv"))

	w.setReleaseState("a", true)
	w.await("a ready release", func() bool {
		c := &addonsv1.HelmChartProxy{}
		w.must(w.Get(t.Context(), w.key(), c))
		return condition(c, addonsv1.SpecsUpToDate) == "True UpToDate: "
	})
	w.checkIrrelevantChanges(a)

	patch(a, func() { delete(a.Labels, "cni") })
	w.await("no release any more", func() bool { return len(w.all()) == 0 })
	w.must(w.Delete(t.Context(), &addonsv1.HelmChartProxy{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "cni"}}))
	w.await("the end", func() bool { return w.Get(t.Context(), w.key(), &addonsv1.HelmChartProxy{}) != nil })
}

// checkIrrelevantChanges changes the status of a Cluster repeatedly, followed by one relevant
// change, so that all events have arrived when that one has.
func (w *world) checkIrrelevantChanges(a *clusterv1.Cluster) {
	w.Helper()
	w.await("rest", func() bool {
		before := reconciles(w.T)
		<-time.After(2 * collect)
		return reconciles(w.T) == before
	})
	before := reconciles(w.T)
	for range 20 {
		w.must(w.Get(w.Context(), ctrlclient.ObjectKeyFromObject(a), a))
		a.Status.ObservedGeneration++
		w.must(w.Status().Update(w.Context(), a))
	}
	old := a.DeepCopy()
	a.Labels["zone"] = "y"
	w.must(w.Patch(w.Context(), a, ctrlclient.MergeFrom(old)))
	w.await("the last change", func() bool { return w.all()["a"].Spec.Values == "zone: y\nmetro: sv" })
	if n := reconciles(w.T) - before; n > 3 {
		w.Errorf("20 changes of a status and one of a label made %v reconciles", n)
	}
}

// reconciles counts the reconciles of the controller in this process.
func reconciles(t *testing.T) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, f := range families {
		if f.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			if m.GetLabel()[0].GetValue() == name {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}
