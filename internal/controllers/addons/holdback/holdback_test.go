package holdback

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

func TestHookCondition(t *testing.T) {
	for _, tc := range []struct {
		name string
		facts
		want action
	}{
		{"no release asks for it", facts{}, keepHook},
		{"a release asks for it", facts{releases: 1}, addHook},
		{"the hook exists", facts{releases: 1, hooked: true}, keepHook},
		{"no release asks any more", facts{hooked: true}, removeHook},
		{"only the machine is deleted", facts{deleting: true, releases: 1, hooked: true}, removeHook},
		{"only the machine is deleted, without a hook", facts{deleting: true, releases: 1}, keepHook},
		{"the cluster is deleted", facts{cluster: terminating, releases: 1, hooked: true}, keepHook},
		{"the cluster is deleted, the hook is missing", facts{cluster: terminating, releases: 1}, addHook},
		{"the cluster and the machine are deleted", facts{cluster: terminating, deleting: true, releases: 1, hooked: true}, keepHook},
		{"the cluster and the machine are deleted, without a hook", facts{cluster: terminating, deleting: true, releases: 1}, keepHook},
		{"the cluster is deleted, everything is uninstalled", facts{cluster: terminating, deleting: true, hooked: true}, removeHook},
		{"the cluster is gone", facts{cluster: gone, deleting: true, releases: 1, hooked: true}, removeHook},
	} {
		if got := decide(tc.facts); got != tc.want {
			t.Errorf("%s: got %d, want %d", tc.name, got, tc.want)
		}
	}
}

// world is a cluster with a machine.
type world struct {
	*testing.T
	ctrlclient.Client

	c  *Controller
	ns string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	server := kubetest.SharedWithoutWebhooks(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, addonsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	client, err := ctrlclient.New(server.Config, ctrlclient.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t, client, &Controller{Client: client}, server.Namespace(t)}
	w.must(w.Create(t.Context(), &clusterv1.Cluster{
		ObjectMeta: w.meta("c"), Spec: clusterv1.ClusterSpec{ClusterNetwork: clusterv1.ClusterNetwork{ServiceDomain: "x.local"}},
	}))
	w.must(w.Create(t.Context(), &clusterv1.Machine{ObjectMeta: w.meta("m"), Spec: clusterv1.MachineSpec{
		ClusterName: "c", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("s")},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "PacketMachine", Name: "m"},
	}}))
	return w
}

// meta has a finalizer, so that deleted objects can still be read.
func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: w.ns, Name: name, Finalizers: []string{"test/hold"}, Labels: map[string]string{clusterv1.ClusterNameLabel: "c"},
	}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) release(before bool) *addonsv1.HelmReleaseProxy {
	w.Helper()
	r := &addonsv1.HelmReleaseProxy{ObjectMeta: w.meta("r"), Spec: addonsv1.HelmReleaseProxySpec{
		ClusterRef: corev1.ObjectReference{Name: "c", Namespace: w.ns}, ChartName: "x", RepoURL: "https://charts.example.com",
		Options: addonsv1.HelmOptions{Uninstall: &addonsv1.HelmUninstallOptions{BeforeCluster: before}},
	}}
	w.must(w.Create(w.Context(), r))
	return r
}

// reconcileHook reconciles the machine and reports whether it has the hook.
func (w *world) reconcileHook() bool {
	w.Helper()
	key := ctrlclient.ObjectKey{Namespace: w.ns, Name: "m"}
	_, err := w.c.Reconcile(w.Context(), ctrl.Request{NamespacedName: key})
	w.must(err)
	m := &clusterv1.Machine{}
	w.must(w.Get(w.Context(), key, m))
	_, ok := m.Annotations[Hook]
	return ok
}

func (w *world) remove(o ctrlclient.Object) {
	w.Helper()
	w.must(w.Delete(w.Context(), o))
}

func TestSingleMachineDeletionIsNotBlocked(t *testing.T) {
	w := newWorld(t)
	if w.reconcileHook() {
		t.Error("hooked without a reason")
	}
	w.release(true)
	if !w.reconcileHook() {
		t.Error("not hooked")
	}
	w.remove(&clusterv1.Machine{ObjectMeta: w.meta("m")})
	if w.reconcileHook() {
		t.Error("held up")
	}
}

func TestClusterDeletionWaitsForUninstall(t *testing.T) {
	w := newWorld(t)
	r := w.release(true)
	w.reconcileHook()
	w.remove(&clusterv1.Cluster{ObjectMeta: w.meta("c")})
	w.remove(&clusterv1.Machine{ObjectMeta: w.meta("m")})
	if !w.reconcileHook() {
		t.Fatal("not held up")
	}
	w.must(w.Get(t.Context(), ctrlclient.ObjectKeyFromObject(r), r))
	if r.DeletionTimestamp.IsZero() {
		t.Error("a release made by hand is not uninstalled")
	}
	r.Finalizers = nil
	w.must(w.Update(t.Context(), r))
	if w.reconcileHook() {
		t.Error("held up for nothing")
	}
}

func TestReleasesWithoutUninstallBlockNothing(t *testing.T) {
	w := newWorld(t)
	w.release(false)
	if w.reconcileHook() {
		t.Error("hooked")
	}
}
