package install

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/model/owner"
)

// capture makes the cluster one that a creator named like an existing namespace.
func (w *world) capture() {
	w.Helper()
	cluster := &clusterv1.Cluster{}
	must(w.T, w.Get(w.Context(), client.ObjectKey{Namespace: packagesv1.KubeconfigNamespace, Name: w.cluster}, cluster))
	cluster.Labels = owner.Labels(&metav1.ObjectMeta{Namespace: "team", Name: w.cluster})
	cluster.Annotations = map[string]string{anywherev1.ClusterUIDAnnotation: "one"}
	must(w.T, w.Update(w.Context(), cluster))
}

func (w *world) denied(p *packagesv1.Package, words string) {
	w.Helper()
	w.until(p, "the target is denied", func(p *packagesv1.Package) bool {
		return reason(p, packagesv1.TargetFound) == "False Denied" && strings.Contains(p.Status.Detail, words)
	})
	if w.Get(w.Context(), client.ObjectKeyFromObject(p), &addonsv1.HelmReleaseProxy{}) == nil {
		w.Fatal("the package was delivered")
	}
}

func TestPackagesAreNotDeliveredToAClusterThatCapturedTheirNamespace(t *testing.T) {
	w := newWorld(t)
	w.capture()
	w.bundle(1, pack("hello", "0.1.0"))
	controller := w.controller(w.bundleName(1))
	p := w.install("secret", packagesv1.PackageSpec{PackageName: "hello", TargetNamespace: "x"})
	w.denied(p, "was not made for Cluster")

	t.Log("an administrator names the cluster, and then the namespace")
	before := controller.DeepCopy()
	controller.Spec.ClusterNamespace = packagesv1.KubeconfigNamespace
	must(t, w.Patch(t.Context(), controller, client.MergeFrom(before)))
	w.denied(p, "was not created for Cluster")
	namespace := &corev1.Namespace{}
	must(t, w.Get(t.Context(), client.ObjectKey{Name: w.namespace}, namespace))
	namespace.Annotations = map[string]string{anywherev1.ClusterUIDAnnotation: "one"}
	must(t, w.Update(t.Context(), namespace))
	w.release(p, digest("hello0.1.0"))
}

// recreate deletes the cluster and its PackageBundleController, and creates others of their name.
func (w *world) recreate(controller *packagesv1.PackageBundleController) {
	w.Helper()
	for _, o := range []client.Object{controller, w.clusterIn(packagesv1.KubeconfigNamespace)} {
		must(w.T, w.Delete(w.Context(), o))
	}
	w.create(w.clusterIn(packagesv1.KubeconfigNamespace))
	w.controller(controller.Spec.ActiveBundle)
}

func TestPackageDoesNotFollowTheNameOfADeletedCluster(t *testing.T) {
	w := newWorld(t)
	w.bundle(1, pack("hello", "0.1.0"))
	w.bundle(2, pack("hello", "0.2.0"))
	controller := w.controller(w.bundleName(1))
	p := &packagesv1.Package{
		ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: w.cluster + "-secret"},
		Spec:       packagesv1.PackageSpec{PackageName: "hello", TargetNamespace: "x"},
	}
	w.create(p)
	w.release(p, digest("hello0.1.0"))
	w.ready(p)
	known := w.state(p, packagesv1.StateInstalled).Status.Target
	w.recreate(controller)
	w.activate(w.bundleName(2))
	now := w.until(p, "the target is denied", func(p *packagesv1.Package) bool {
		return reason(p, packagesv1.TargetFound) == "False Denied" && strings.Contains(p.Status.Detail, "delete the Package and create it again")
	})
	if now.Status.Target.ClusterUID == "" || *now.Status.Target != *known {
		t.Errorf("the target is %+v, was %+v", now.Status.Target, known)
	}
	if r := w.release(p, digest("hello0.1.0")); r.Spec.ClusterRef.Name != w.cluster {
		t.Errorf("the release changed: %+v", r.Spec)
	}
}

func TestPackageStaysOnItsClusterWithoutController(t *testing.T) {
	w := newWorld(t)
	w.bundle(1, pack("hello", "0.1.0"))
	longer := w.cluster + "-my"
	cluster := w.clusterIn(packagesv1.KubeconfigNamespace)
	cluster.Name = longer
	w.create(cluster)
	own := w.controller(w.bundleName(1))
	other := &packagesv1.PackageBundleController{
		ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: longer}, Spec: packagesv1.PackageBundleControllerSpec{ActiveBundle: w.bundleName(1)},
	}
	w.create(other)
	p := &packagesv1.Package{
		ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: longer + "-hello"},
		Spec:       packagesv1.PackageSpec{PackageName: "hello", TargetNamespace: "x"},
	}
	w.create(p)
	w.release(p, digest("hello0.1.0"))
	must(t, w.Delete(t.Context(), other))
	now := w.until(p, "the target is unknown", func(p *packagesv1.Package) bool { return reason(p, packagesv1.TargetFound) == "False Unknown" })
	release := &addonsv1.HelmReleaseProxy{}
	must(t, w.Get(t.Context(), client.ObjectKeyFromObject(p), release))
	if release.Spec.ClusterRef.Name != longer {
		t.Errorf("it moved to cluster %q, of controller %q: %s", release.Spec.ClusterRef.Name, own.Name, now.Status.Detail)
	}
}
