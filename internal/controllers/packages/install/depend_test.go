package install

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

// named returns a Package in the namespace of the cluster.
func (w *world) named(name string) *packagesv1.Package {
	return &packagesv1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
}

// finish makes the release of a package ready.
func (w *world) finish(p *packagesv1.Package, digest string) *packagesv1.Package {
	w.Helper()
	w.release(p, digest)
	w.ready(p)
	return w.until(p, p.Name+" is installed", func(p *packagesv1.Package) bool {
		return p.Status.State == packagesv1.StateInstalled && p.Status.Source.Digest == digest
	})
}

func TestDependenciesAreInstalledFirstAndDeletedWithTheirLastDependent(t *testing.T) {
	w := newWorld(t)
	w.bundle(1, pack("app", "1.0.0", "lib", "base"), pack("lib", "1.0.0", "base"), pack("base", "1.0.0"), pack("tool", "1.0.0", "LIB"))
	w.bundle(2, pack("app", "2.0.0", "lib", "base"), pack("lib", "2.0.0", "base"), pack("base", "2.0.0"), pack("tool", "1.0.0", "lib"))
	w.controller(w.bundleName(1))
	base := w.install("mine", packagesv1.PackageSpec{PackageName: "base", TargetNamespace: "x"})
	w.release(base, digest("base1.0.0"))
	app := w.install("app", packagesv1.PackageSpec{PackageName: "app", TargetNamespace: "y", Config: "a: b"})
	now := w.until(app, "it waits for dependencies", func(p *packagesv1.Package) bool { return p.Status.Detail == "Waiting for dependencies: base, lib" })
	if now.Status.State != packagesv1.StateInstallingDependencies || reason(now, packagesv1.DependenciesReady) != "False Pending" {
		t.Errorf("status: %+v", now.Status)
	}
	lib := w.until(w.named("lib"), "it is created", func(p *packagesv1.Package) bool { return p.Status.State == packagesv1.StateInstallingDependencies })
	want := packagesv1.PackageSpec{PackageName: "lib", TargetNamespace: "y", Config: "a: b"}
	if diff := cmp.Diff(want, lib.Spec); diff != "" || lib.Annotations[packagesv1.DependentsAnnotation] != "app" {
		t.Errorf("created for %q (-want +got):\n%s", lib.Annotations[packagesv1.DependentsAnnotation], diff)
	}
	w.finish(base, digest("base1.0.0"))
	w.until(app, "base is installed", func(p *packagesv1.Package) bool { return p.Status.Detail == "Waiting for dependencies: lib" })
	w.finish(lib, digest("lib1.0.0"))
	w.finish(app, digest("app1.0.0"))

	t.Log("a second dependent, and an upgrade in the right order")
	tool := w.install("tool", packagesv1.PackageSpec{PackageName: "tool", TargetNamespace: "x"})
	w.finish(tool, digest("tool1.0.0"))
	w.until(lib, "it has two dependents", func(p *packagesv1.Package) bool { return p.Annotations[packagesv1.DependentsAnnotation] == "app,tool" })
	w.activate(w.bundleName(2))
	w.release(base, digest("base2.0.0"))
	for _, waiting := range []*packagesv1.Package{lib, app} {
		w.state(waiting, packagesv1.StateInstallingDependencies)
		r := &addonsv1.HelmReleaseProxy{}
		must(t, w.Get(t.Context(), client.ObjectKeyFromObject(waiting), r))
		if r.Spec.Version != digest(waiting.Name+"1.0.0") {
			t.Errorf("%s did not wait", waiting.Name)
		}
	}
	w.ready(base)
	w.finish(lib, digest("lib2.0.0"))
	w.finish(app, digest("app2.0.0"))

	t.Log("dependents are deleted one after the other")
	must(t, w.Delete(t.Context(), app))
	w.uninstalled(app)
	w.gone(app)
	now = w.until(lib, "one dependent is left", func(p *packagesv1.Package) bool { return p.Annotations[packagesv1.DependentsAnnotation] == "tool" })
	if !now.DeletionTimestamp.IsZero() {
		t.Error("it is deleted before its last dependent")
	}
	must(t, w.Delete(t.Context(), tool))
	w.uninstalled(tool)
	w.gone(tool)
	w.uninstalled(lib)
	w.gone(lib)
	must(t, w.Get(t.Context(), client.ObjectKeyFromObject(base), base))
	if !base.DeletionTimestamp.IsZero() {
		t.Error("a Package of the user is deleted with its dependents")
	}
}

func TestUnneededDependencyIsDeleted(t *testing.T) {
	w := newWorld(t)
	w.bundle(1, pack("app", "1.0.0", "lib"), pack("lib", "1.0.0"))
	w.bundle(2, pack("app", "2.0.0"), pack("lib", "1.0.0"))
	w.controller(w.bundleName(1))
	app := w.install("app", packagesv1.PackageSpec{PackageName: "app", TargetNamespace: "x"})
	w.finish(w.named("lib"), digest("lib1.0.0"))
	w.finish(app, digest("app1.0.0"))
	t.Log("it is created again after it was deleted")
	must(t, w.Delete(t.Context(), w.named("lib")))
	w.uninstalled(w.named("lib"))
	w.until(w.named("lib"), "it is created again", func(p *packagesv1.Package) bool { return p.DeletionTimestamp.IsZero() })
	w.finish(w.named("lib"), digest("lib1.0.0"))
	if now := w.until(app, "no dependency is missing", func(p *packagesv1.Package) bool { return reason(p, packagesv1.Ready) == "True Installed" }); now.Status.State != packagesv1.StateInstalled {
		t.Errorf("status: %+v", now.Status)
	}
	w.activate(w.bundleName(2))
	w.finish(app, digest("app2.0.0"))
	w.uninstalled(w.named("lib"))
	w.gone(w.named("lib"))
}

func TestPackageIsKeptUntilItsReleaseIsUninstalled(t *testing.T) {
	w := newWorld(t)
	w.bundle(1, pack("hello", "0.1.0"))
	c := w.controller(w.bundleName(1))
	p := w.install("my", packagesv1.PackageSpec{PackageName: "hello", TargetNamespace: "x"})
	w.finish(p, digest("hello0.1.0"))
	must(t, w.Delete(t.Context(), c)) // a package can be deleted without its bundle
	must(t, w.Delete(t.Context(), p))
	now := w.state(p, packagesv1.StateUninstalling)
	if reason(now, packagesv1.Installed) != "False Uninstalling" {
		t.Errorf("status: %+v", now.Status)
	}
	w.becomes(p, addonsv1.ReleaseReady, addonsv1.ReleaseDeletionFailedReason, "hook pre-delete failed")
	w.until(p, "the failure is reported", func(p *packagesv1.Package) bool { return p.Status.Detail == "hook pre-delete failed" })
	w.uninstalled(p)
	w.gone(p)
}

func TestUnreachableClusterIsAbandonedOnRequest(t *testing.T) {
	w := newWorld(t)
	w.bundle(1, pack("hello", "0.1.0"))
	w.controller(w.bundleName(1))
	p := w.install("my", packagesv1.PackageSpec{PackageName: "hello", TargetNamespace: "x"})
	now := w.finish(p, digest("hello0.1.0"))
	before := now.DeepCopy()
	now.Finalizers = append(now.Finalizers, "test/hold") // keeps the Package, so that its last status can be read
	must(t, w.Patch(t.Context(), now, client.MergeFrom(before)))
	must(t, w.Delete(t.Context(), p))
	w.state(p, packagesv1.StateUninstalling)
	w.becomes(p, addonsv1.ClusterAvailable, addonsv1.NotAvailableReason, "the cluster is unreachable")
	now = w.until(p, "the cluster is reported as unreachable", func(p *packagesv1.Package) bool { return reason(p, packagesv1.Installed) == "Unknown Uninstalling" })
	before = now.DeepCopy()
	now.Annotations = map[string]string{packagesv1.AbandonAnnotation: "true"}
	must(t, w.Patch(t.Context(), now, client.MergeFrom(before)))
	r := &addonsv1.HelmReleaseProxy{}
	kubetest.Eventually(w, "the release is abandoned", func() bool {
		return w.Get(t.Context(), client.ObjectKeyFromObject(p), r) == nil && r.Spec.Options.Uninstall.GiveUpAfter.Duration == atOnce
	}, func() string { return "" })
	w.becomes(p, addonsv1.ClusterAvailable, addonsv1.NotAvailableReason, "the cluster is unreachable")
	w.uninstalled(p)
	now = w.until(p, "the finalizer is removed", func(p *packagesv1.Package) bool { return len(p.Finalizers) == 1 })
	if got := reason(now, packagesv1.Installed); got != "False Abandoned" {
		t.Errorf("Installed is %q", got)
	}
}

func TestUnreachableClusterIsAbandonedAfterTimeout(t *testing.T) {
	w := newWorld(t)
	p := &packagesv1.Package{
		ObjectMeta: metav1.ObjectMeta{ // paused: the running controller skips it
			Namespace: w.namespace, Name: "my", Annotations: map[string]string{clusterv1.PausedAnnotation: ""}, Finalizers: []string{"test/hold"},
		},
		Spec: packagesv1.PackageSpec{PackageName: "hello"},
	}
	w.create(p)
	p.Status.Target = &packagesv1.PackageTarget{Cluster: w.cluster, ClusterNamespace: packagesv1.KubeconfigNamespace, Release: "my", Namespace: "x"}
	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{
		Type: packagesv1.Installed, Status: metav1.ConditionUnknown, Reason: packagesv1.UninstallingReason, Message: "the cluster is unreachable",
	})
	must(t, w.Status().Update(t.Context(), p))
	must(t, w.Delete(t.Context(), p))
	must(t, w.Get(t.Context(), client.ObjectKeyFromObject(p), p))
	for _, tc := range []struct {
		after time.Duration
		want  bool
	}{{giveUpAfter - time.Second, false}, {giveUpAfter, true}} {
		c := &Controller{Client: w.Client, Live: w.Client}
		s := &scope{facts: facts{pack: p, deletingFor: tc.after}}
		if err := c.findAbandoned(t.Context(), s); err != nil || s.abandoned != tc.want {
			t.Errorf("after %s it is abandoned: %t, %v", tc.after, s.abandoned, err)
		}
	}
	reportAbandoned(p)
	if got := reason(p, packagesv1.Installed); got != "False Abandoned" {
		t.Errorf("Installed is %q", got)
	}
}
