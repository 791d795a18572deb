package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/model/owner"
)

// initialized marks the control plane of a cluster as initialized.
func (w *world) initialized(name string) {
	w.Helper()
	made := &clusterv1.Cluster{}
	w.must(w.Get(w.Context(), system(name), made))
	made.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	w.must(w.Status().Update(w.Context(), made))
}

func bundles(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: packagesv1.Namespace, Name: name}
}

func TestPackagesAreEnabledOnInitializedClusters(t *testing.T) {
	w := newWorld(t)
	w.make("shop")
	w.reconcile("shop")
	controller := &packagesv1.PackageBundleController{}
	if err := w.Get(t.Context(), bundles("shop"), controller); !apierrors.IsNotFound(err) {
		t.Fatalf("bundle controller of a missing cluster: got error %v, want NotFound", err)
	}
	w.initialized("shop")
	w.reconcile("shop")
	w.must(w.Get(t.Context(), bundles("shop"), controller))
	if controller.Spec.ClusterNamespace != anywherev1.SystemNamespace {
		t.Errorf("it is for a cluster in %q", controller.Spec.ClusterNamespace)
	}
	room := &corev1.Namespace{}
	w.must(w.Get(t.Context(), client.ObjectKey{Name: "eksa-packages-shop"}, room))
	if room.Labels["pod-security.kubernetes.io/enforce"] != "restricted" || !owner.Labeled(w.cluster("shop"), room) {
		t.Errorf("labels of the namespace are %v", room.Labels)
	}
	binding := &rbacv1.RoleBinding{}
	w.must(w.Get(t.Context(), client.ObjectKey{Namespace: "eksa-packages-shop", Name: "shop-packages"}, binding))
	if binding.Subjects[0].Name != "developer" {
		t.Errorf("%+v may install packages", binding.Subjects)
	}

	controller.Spec.ActiveBundle = "v1-36-1"
	w.must(w.Update(t.Context(), controller))
	version := controller.ResourceVersion
	w.reconcile("shop")
	w.must(w.Get(t.Context(), bundles("shop"), controller))
	if controller.ResourceVersion != version {
		t.Error("what a user chose was written over")
	}
}

func TestPackagesAreDisabled(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"bare", "ends"} {
		w.make(name)
		w.reconcile(name)
		w.initialized(name)
		w.reconcile(name)
	}
	w.change("bare", func(c *anywherev1.Cluster) { c.Spec.Packages = &anywherev1.PackageConfiguration{Disable: true} })
	w.reconcile("bare")
	w.must(w.Delete(t.Context(), w.cluster("ends")))
	for range 5 {
		w.reconcile("ends")
	}
	for _, name := range []string{"bare", "ends"} {
		if err := w.Get(t.Context(), bundles(name), &packagesv1.PackageBundleController{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s has packages: %v", name, err)
		}
	}
	room := &corev1.Namespace{}
	w.must(w.Get(t.Context(), client.ObjectKey{Name: "eksa-packages-ends"}, room))
	if room.DeletionTimestamp.IsZero() {
		t.Error("the namespace of packages still exists, want it deleted")
	}
}

func TestForeignPackageObjectsAreLeftUnchanged(t *testing.T) {
	w := newWorld(t)
	w.make("theirs")
	w.reconcile("theirs")
	own := &packagesv1.PackageBundleController{}
	own.Namespace, own.Name, own.Spec.UpgradePolicy = packagesv1.Namespace, "theirs", packagesv1.UpgradeAlways
	w.must(w.Create(t.Context(), own))
	w.initialized("theirs")
	w.reconcile("theirs")
	w.must(w.Delete(t.Context(), w.cluster("theirs")))
	for range 5 {
		w.reconcile("theirs")
	}
	w.must(w.Get(t.Context(), bundles("theirs"), own))
	if own.Spec.UpgradePolicy != packagesv1.UpgradeAlways || len(own.Labels) > 0 || !own.DeletionTimestamp.IsZero() {
		t.Errorf("it was changed: %+v", own)
	}
}
