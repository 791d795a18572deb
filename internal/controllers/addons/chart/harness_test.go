package chart

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

// world is a namespace on a real API server, and a controller.
type world struct {
	*testing.T
	ctrlclient.Client
	*Controller

	ns     string
	clock  *clocktesting.FakePassiveClock
	events *record.FakeRecorder
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	server := kubetest.SharedWithoutWebhooks(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.AddToScheme, addonsv1.AddToScheme, infrav1.AddToScheme, apiextensionsv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	client, err := lettingGo(server.Config, ctrlclient.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		T: t, Client: client, ns: server.Namespace(t), events: record.NewFakeRecorder(4096),
		clock: clocktesting.NewFakePassiveClock(time.Now().Truncate(time.Second)),
	}
	w.Controller = &Controller{Client: client, Live: client, Events: w.events, Clock: w.clock}
	return w
}

// releaseController is a client that simulates the release controller when a release is deleted:
// nothing is on the cluster.
type releaseController struct{ ctrlclient.Client }

func lettingGo(cfg *rest.Config, o ctrlclient.Options) (ctrlclient.Client, error) {
	c, err := ctrlclient.New(cfg, o)
	return &releaseController{c}, err
}

func (c *releaseController) Delete(ctx context.Context, o ctrlclient.Object, options ...ctrlclient.DeleteOption) error {
	if err := c.Client.Delete(ctx, o, options...); err != nil {
		return err
	}
	r, ok := o.(*addonsv1.HelmReleaseProxy)
	if !ok {
		return nil
	}
	before := r.DeepCopy()
	if !controllerutil.RemoveFinalizer(r, addonsv1.HelmReleaseProxyFinalizer) {
		return nil
	}
	return ctrlclient.IgnoreNotFound(c.Patch(ctx, r, ctrlclient.MergeFrom(before)))
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// cluster creates a Cluster with labels such as "zone=a".
func (w *world) cluster(name string, labels ...string) *clusterv1.Cluster {
	w.Helper()
	c := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name, Labels: map[string]string{}},
		Spec:       clusterv1.ClusterSpec{ClusterNetwork: clusterv1.ClusterNetwork{ServiceDomain: "cluster.local"}},
	}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		c.Labels[key] = value
	}
	w.must(w.Create(w.Context(), c))
	return c
}

// chart creates a HelmChartProxy for all clusters.
func (w *world) chart(change func(*addonsv1.HelmChartProxy)) *addonsv1.HelmChartProxy {
	w.Helper()
	c := &addonsv1.HelmChartProxy{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "cni"},
		Spec: addonsv1.HelmChartProxySpec{
			ChartName: "cilium", RepoURL: "https://charts.example.com", ReleaseNamespace: "kube-system",
			ValuesTemplate: "cluster: {{ .Cluster.metadata.name }}",
		},
	}
	if change != nil {
		change(c)
	}
	w.must(w.Create(w.Context(), c))
	return c
}

// run reconciles and returns the HelmChartProxy. A retriable problem is an error, too.
func (w *world) try() (*addonsv1.HelmChartProxy, ctrl.Result, error) {
	w.Helper()
	key := ctrlclient.ObjectKey{Namespace: w.ns, Name: "cni"}
	result, err := w.Reconcile(w.Context(), ctrl.Request{NamespacedName: key})
	c := &addonsv1.HelmChartProxy{}
	w.must(ctrlclient.IgnoreNotFound(w.Get(w.Context(), key, c)))
	lint(w.T, c)
	return c, result, err
}

func (w *world) run() *addonsv1.HelmChartProxy {
	w.Helper()
	c, _, err := w.try()
	w.must(err)
	return c
}

// lint checks the rules for every status.
func lint(t *testing.T, c *addonsv1.HelmChartProxy) {
	t.Helper()
	for _, c := range c.Status.Conditions {
		switch {
		case c.Status == "" || c.Reason == "" || c.LastTransitionTime.IsZero():
			t.Errorf("condition %s is not complete: %+v", c.Type, c)
		case c.Status != "True" && c.Message == "":
			t.Errorf("condition %s is %s without a message", c.Type, c.Status)
		case len(c.Message) > 2*maxMessage:
			t.Errorf("the message of condition %s has %d bytes", c.Type, len(c.Message))
		case strings.Contains(c.Message, "canary"):
			t.Errorf("condition %s contains a value of the chart", c.Type)
		}
	}
}

// change updates the HelmChartProxy.
func (w *world) change(do func(*addonsv1.HelmChartProxy)) {
	w.Helper()
	c := &addonsv1.HelmChartProxy{}
	w.must(w.Get(w.Context(), ctrlclient.ObjectKey{Namespace: w.ns, Name: "cni"}, c))
	do(c)
	w.must(w.Update(w.Context(), c))
}

// releases returns the releases of the HelmChartProxy by cluster.
func (w *world) all() map[string]*addonsv1.HelmReleaseProxy {
	w.Helper()
	list, out := &addonsv1.HelmReleaseProxyList{}, map[string]*addonsv1.HelmReleaseProxy{}
	w.must(w.List(w.Context(), list, ctrlclient.InNamespace(w.ns)))
	for i := range list.Items {
		out[list.Items[i].Spec.ClusterRef.Name] = &list.Items[i]
	}
	return out
}

// release returns the release on a cluster.
func (w *world) release(cluster string) *addonsv1.HelmReleaseProxy {
	w.Helper()
	r := w.all()[cluster]
	if r == nil {
		w.Fatalf("no release on cluster %s", cluster)
	}
	return r
}

// setReleaseState simulates the release controller: the release is ready or has failed.
func (w *world) setReleaseState(cluster string, ready bool) {
	w.Helper()
	r := w.release(cluster)
	r.Status.ObservedGeneration = r.Generation
	c := metav1.Condition{Type: addonsv1.ReleaseReady, Status: metav1.ConditionTrue, Reason: addonsv1.ReadyReason}
	if !ready {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, addonsv1.InstallOrUpgradeFailedReason, "it did not work"
	}
	c.LastTransitionTime = metav1.NewTime(w.clock.Now())
	conditions.Set(r, c)
	c.Type = clusterv1.ReadyCondition
	conditions.Set(r, c)
	r.Status.Applied = &addonsv1.AppliedRelease{At: &metav1.Time{Time: w.clock.Now()}}
	w.must(w.Status().Update(w.Context(), r))
}

// condition returns a condition as "True UpToDate: message".
func condition(c *addonsv1.HelmChartProxy, kind string) string {
	got := conditions.Get(c, kind)
	if got == nil {
		return "none"
	}
	return fmt.Sprintf("%s %s: %s", got.Status, got.Reason, got.Message)
}

func (w *world) has(c *addonsv1.HelmChartProxy, kind, words string) {
	w.Helper()
	if got := condition(c, kind); !strings.HasPrefix(got, words) {
		w.Errorf("%s is %q, want it to begin with %q", kind, got, words)
	}
}

// quiet fails if another reconcile writes anything.
func (w *world) quiet() {
	w.Helper()
	before, releases := w.run(), w.all()
	after := w.run()
	if before.ResourceVersion != after.ResourceVersion {
		w.Errorf("the HelmChartProxy was written again: %+v, then %+v", before.Status, after.Status)
	}
	for cluster, r := range w.all() {
		if old := releases[cluster]; old == nil || old.ResourceVersion != r.ResourceVersion {
			w.Errorf("the release on %s was written again", cluster)
		}
	}
}
