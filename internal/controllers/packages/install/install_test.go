package install

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestInstallFromBundle(t *testing.T) {
	w := newWorld(t)
	w.bundle(1, pack("hello-eks-anywhere", "0.1.0"))
	w.controller(w.bundleName(1))
	p := &packagesv1.Package{
		ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: w.cluster + "-my"},
		Spec:       packagesv1.PackageSpec{PackageName: "Hello-EKS-Anywhere", Config: "title: hi\n"},
	}
	w.create(p)
	r := w.release(p, digest("hello-eks-anywhere0.1.0"))
	want := addonsv1.HelmReleaseProxySpec{
		ClusterRef: corev1.ObjectReference{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster", Namespace: "eksa-system", Name: w.cluster},
		RepoURL:    "oci://charts.example.com", ChartName: "hello-eks-anywhere", Version: digest("hello-eks-anywhere0.1.0"),
		ReleaseName: "my", ReleaseNamespace: "from-chart",
		Values: "imagePullSecrets:\n- name: ecr-token\n- name: registry-mirror-cred\nsourceRegistry: images.example.com\ntitle: hi\n",
		Options: addonsv1.HelmOptions{
			Wait: true, Timeout: &metav1.Duration{Duration: 10 * time.Minute},
			Install:   addonsv1.HelmInstallOptions{CreateNamespace: ptr.To(false)},
			Upgrade:   addonsv1.HelmUpgradeOptions{MaxHistory: ptr.To(2)},
			Uninstall: &addonsv1.HelmUninstallOptions{GiveUpAfter: &metav1.Duration{Duration: 30 * time.Minute}},
		},
	}
	if diff := cmp.Diff(want, r.Spec); diff != "" {
		t.Errorf("release (-want +got):\n%s", diff)
	}
	now := w.state(p, packagesv1.StateInstalling)
	if !metav1.IsControlledBy(r, now) || r.Labels[packagesv1.PackageLabel] != p.Name {
		t.Errorf("the release does not belong to the Package: %+v", r.ObjectMeta)
	}
	w.ready(p)
	now = w.state(p, packagesv1.StateInstalled)
	status := now.Status.DeepCopy()
	status.Conditions = nil
	cluster := &clusterv1.Cluster{}
	must(t, w.Get(t.Context(), client.ObjectKey{Namespace: packagesv1.KubeconfigNamespace, Name: w.cluster}, cluster))
	wanted := packagesv1.PackageStatus{
		Source:         packagesv1.PackageOCISource{Version: "0.1.0", Repository: "hello-eks-anywhere", Digest: digest("hello-eks-anywhere0.1.0")},
		CurrentVersion: "0.1.0", TargetVersion: "0.1.0 (latest)", State: packagesv1.StateInstalled, Spec: p.Spec, ObservedGeneration: now.Generation,
		Target: &packagesv1.PackageTarget{
			Cluster: w.cluster, ClusterNamespace: "eksa-system", ClusterUID: string(cluster.UID), Release: "my", Namespace: "from-chart",
		},
	}
	if diff := cmp.Diff(&wanted, status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{
		packagesv1.TargetFound: "True Known", packagesv1.SourceFound: "True Found", packagesv1.DependenciesReady: "True Installed",
		packagesv1.Installed: "True Installed", packagesv1.Ready: "True Installed",
	} {
		if got := reason(now, name); got != want {
			t.Errorf("condition %s is %q, want %q", name, got, want)
		}
	}
}

func TestActivationUpdatesThePackagesOfOneCluster(t *testing.T) {
	a, b := newWorld(t), newWorld(t)
	a.bundle(1, pack("hello", "0.1.0"))
	a.bundle(2, pack("hello", "0.2.0"))
	var packs []*packagesv1.Package
	for _, w := range []*world{a, b} {
		w.controller(a.bundleName(1))
		p := w.install("my", packagesv1.PackageSpec{PackageName: "hello", TargetNamespace: "x"})
		w.release(p, digest("hello0.1.0"))
		w.ready(p)
		packs = append(packs, w.state(p, packagesv1.StateInstalled))
	}
	for _, step := range []struct {
		bundle          int
		version, before string
	}{{2, "0.2.0", "0.1.0"}, {1, "0.1.0", "0.2.0"}} {
		a.activate(a.bundleName(step.bundle))
		a.release(packs[0], digest("hello"+step.version))
		now := a.state(packs[0], packagesv1.StateUpdating)
		if now.Status.CurrentVersion != step.before || now.Status.TargetVersion != step.version+" (latest)" {
			t.Errorf("status: %+v", now.Status)
		}
		a.ready(packs[0])
		a.until(packs[0], "the update is finished", func(p *packagesv1.Package) bool {
			return p.Status.State == packagesv1.StateInstalled && p.Status.CurrentVersion == step.version && p.Status.Source.Version == step.version
		})
	}
	now := &packagesv1.Package{}
	must(t, b.Get(t.Context(), client.ObjectKeyFromObject(packs[1]), now))
	if now.ResourceVersion != packs[1].ResourceVersion {
		t.Errorf("the package of the other cluster was written: %+v", now.Status)
	}
}

func TestBlockedPackageReportsTheReason(t *testing.T) {
	schema := bundle.EncodeSchema([]byte(`{"type":"object","properties":{"title":{"type":"string"}},"additionalProperties":false}`))
	strict := pack("strict", "0.1.0")
	strict.Source.Versions[0].Schema = schema
	w := newWorld(t)
	w.bundle(1, pack("hello", "0.1.0"), strict, pack("round", "1.0.0", "square"), pack("square", "1.0.0", "round"), pack("missing", "1.0.0"),
		pack("lost", "1.0.0", "nothing"))
	c := w.controller(w.bundleName(1))
	for _, tc := range []struct {
		name      string
		spec      packagesv1.PackageSpec
		state     packagesv1.StateEnum
		condition string
		reason    string
		detail    string
	}{
		{
			"absent",
			packagesv1.PackageSpec{PackageName: "nothing"},
			"initializing", packagesv1.SourceFound, "False NotInBundle",
			"Package nothing is not in the active bundle (" + w.bundleName(1) + ").",
		},
		{
			"version",
			packagesv1.PackageSpec{PackageName: "hello", PackageVersion: "9"},
			"initializing", packagesv1.SourceFound, "False NotInBundle",
			"Package hello@9 is not in the active bundle (" + w.bundleName(1) + ").",
		},
		{
			"config",
			packagesv1.PackageSpec{PackageName: "strict", Config: "fakeConfig: canary"},
			"initializing", packagesv1.SourceFound, "False ConfigInvalid",
			"Additional property fakeConfig is not allowed",
		},
		{"yaml", packagesv1.PackageSpec{PackageName: "hello", Config: "a: canary: b"}, "initializing", packagesv1.SourceFound, "False ConfigInvalid", "yaml"},
		{
			"circle",
			packagesv1.PackageSpec{PackageName: "round", TargetNamespace: "x"},
			"installing dependencies", packagesv1.DependenciesReady, "False Invalid",
			"invalid package bundle. (round@1.0.0 bundle: " + w.bundleName(1) + "): ",
		},
		{
			"lost",
			packagesv1.PackageSpec{PackageName: "lost", TargetNamespace: "x"},
			"installing dependencies", packagesv1.DependenciesReady, "False Invalid",
			"invalid package bundle. (lost@1.0.0 bundle: " + w.bundleName(1) + ")",
		},
		{"chart", packagesv1.PackageSpec{PackageName: "missing"}, "installing", packagesv1.Installed, "False Failed", "not found"},
	} {
		p := w.install(tc.name, tc.spec)
		now := w.until(p, tc.name+" is blocked", func(p *packagesv1.Package) bool { return reason(p, tc.condition) == tc.reason })
		if now.Status.State != tc.state || !strings.Contains(now.Status.Detail, tc.detail) || reason(now, packagesv1.Ready) != tc.reason {
			t.Errorf("%s: state %q, detail %q, want %q, %q; Ready is %q", tc.name, now.Status.State, now.Status.Detail, tc.state, tc.detail, reason(now, packagesv1.Ready))
		}
		if w.Get(t.Context(), client.ObjectKeyFromObject(p), &addonsv1.HelmReleaseProxy{}) == nil {
			t.Errorf("%s: a release was created", tc.name)
		}
	}
	t.Log("an installed package stays installed without its bundle")
	p := w.install("good", packagesv1.PackageSpec{PackageName: "hello", TargetNamespace: "x"})
	w.release(p, digest("hello0.1.0"))
	w.ready(p)
	w.state(p, packagesv1.StateInstalled)
	for name, detail := range map[string]string{"": "no activeBundle set in PackageBundleController", "v9-9-9": `packagebundles.packages.eks.amazonaws.com "v9-9-9" not found`} {
		w.activate(name)
		now := w.until(p, "the missing bundle is reported", func(p *packagesv1.Package) bool {
			return p.Status.Detail == detail || strings.Contains(p.Status.Detail, `"v9-9-9" not found`) && name != ""
		})
		if now.Status.State != packagesv1.StateInstalled || reason(now, packagesv1.SourceFound) != "False NoActiveBundle" || reason(now, packagesv1.Installed) != "True Installed" {
			t.Errorf("with bundle %q: %+v", name, now.Status)
		}
	}
	must(t, w.Delete(t.Context(), c))
	w.until(p, "the missing target is reported", func(p *packagesv1.Package) bool { return reason(p, packagesv1.TargetFound) == "False Unknown" })
}

func TestUntrustedBundleIsNotUsed(t *testing.T) {
	w := newWorld(t)
	changed := w.unsigned(1, pack("hello", "0.1.0"))
	plane.signer.Sign(t, changed)
	changed.Spec.Packages[0].Source.Versions[0].Digest = digest("evil")
	w.create(changed)
	w.create(w.unsigned(2, pack("hello", "0.1.0")))
	future := w.unsigned(3, pack("hello", "0.1.0"))
	future.Spec.MinVersion = "v9.0.0"
	plane.signer.Sign(t, future)
	w.create(future)
	w.bundle(4, pack("hello", "0.1.0"))
	w.controller(w.bundleName(1))
	p := w.install("my", packagesv1.PackageSpec{PackageName: "hello", TargetNamespace: "x"})
	for i, text := range []string{"The signature is invalid", "Missing signature", "v9.0.0"} {
		w.activate(w.bundleName(i + 1))
		now := w.until(p, text, func(p *packagesv1.Package) bool { return strings.Contains(p.Status.Detail, text) })
		if got := reason(now, packagesv1.SourceFound); got != "False BundleRefused" {
			t.Errorf("%s: SourceFound is %q", text, got)
		}
	}
	if w.Get(t.Context(), client.ObjectKeyFromObject(p), &addonsv1.HelmReleaseProxy{}) == nil {
		t.Fatal("a release was created")
	}
	w.activate(w.bundleName(4))
	w.release(p, digest("hello0.1.0"))
}

func TestTargetIsFoundByName(t *testing.T) {
	w := newWorld(t)
	w.bundle(1, pack("hello", "0.1.0"))
	outside := &packagesv1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: w.cluster + "-x"}, Spec: packagesv1.PackageSpec{PackageName: "hello"}}
	w.create(outside)
	if now := w.state(outside, packagesv1.StateUnknown); now.Status.Detail != "Packages namespaces must start with: eksa-packages" || len(now.Finalizers) != 0 {
		t.Errorf("%+v", now)
	}
	p := &packagesv1.Package{
		ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: w.cluster + "-my-hello"},
		Spec:       packagesv1.PackageSpec{PackageName: "hello", TargetNamespace: "x"},
	}
	w.create(p)
	w.until(p, "the target is unknown", func(p *packagesv1.Package) bool { return reason(p, packagesv1.TargetFound) == "False Unknown" })

	t.Log("two clusters have the name, neither in the default namespace")
	must(t, w.Delete(t.Context(), w.clusterIn(packagesv1.KubeconfigNamespace)))
	w.create(w.clusterIn("default"))
	w.create(w.clusterIn(w.namespace))
	// A target that is known doesn't change, so the controller must see all of that first.
	for namespace, exists := range map[string]bool{packagesv1.KubeconfigNamespace: false, "default": true, w.namespace: true} {
		kubetest.Eventually(t, "the controller sees the clusters", func() bool {
			key := client.ObjectKey{Namespace: namespace, Name: w.cluster}
			return (plane.cached.Get(t.Context(), key, &clusterv1.Cluster{}) == nil) == exists
		}, func() string { return namespace })
	}
	w.controller(w.bundleName(1))
	w.until(p, "the target is ambiguous", func(p *packagesv1.Package) bool { return reason(p, packagesv1.TargetFound) == "False Ambiguous" })
	must(t, w.Delete(t.Context(), w.clusterIn("default")))
	w.release(p, digest("hello0.1.0"))
	w.ready(p)
	w.state(p, packagesv1.StateInstalled)

	t.Log("a controller with a longer name doesn't change the target")
	longer := &packagesv1.PackageBundleController{
		ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: w.cluster + "-my"}, Spec: packagesv1.PackageBundleControllerSpec{ActiveBundle: w.bundleName(2)},
	}
	w.create(longer)
	w.bundle(2, pack("hello", "0.2.0"))
	w.activate(w.bundleName(2))
	if r := w.release(p, digest("hello0.2.0")); r.Spec.ReleaseName != "my-hello" || r.Spec.ClusterRef.Name != w.cluster {
		t.Errorf("release: %+v", r.Spec)
	}
}

func TestFailedReleaseIsReported(t *testing.T) {
	w := newWorld(t)
	w.bundle(1, pack("hello", "0.1.0"))
	w.controller(w.bundleName(1))
	p := w.install("my", packagesv1.PackageSpec{PackageName: "hello", TargetNamespace: "x", RollbackOnFailure: true, Timeout: &metav1.Duration{Duration: time.Minute}})
	r := w.release(p, digest("hello0.1.0"))
	if !r.Spec.Options.Atomic || r.Spec.Options.Timeout.Duration != time.Minute {
		t.Errorf("options: %+v", r.Spec.Options)
	}
	w.becomes(p, addonsv1.ReleaseReady, addonsv1.InstallOrUpgradeFailedReason, "Deployment my: no pod is ready")
	now := w.until(p, "the failure is reported", func(p *packagesv1.Package) bool { return reason(p, packagesv1.Installed) == "False Failed" })
	if now.Status.State != packagesv1.StateInstalling || now.Status.Detail != "Deployment my: no pod is ready" || now.Status.CurrentVersion != "" {
		t.Errorf("status: %+v", now.Status)
	}
	w.ready(p)
	w.state(p, packagesv1.StateInstalled)
	w.becomes(p, addonsv1.ReleaseReady, addonsv1.PendingReason, "Deployment my: one of two pods is ready")
	now = w.until(p, "the release is not ready", func(p *packagesv1.Package) bool { return reason(p, packagesv1.Ready) == "False Installing" })
	if now.Status.State != packagesv1.StateInstalled || now.Status.Detail == "" {
		t.Errorf("status: %+v", now.Status)
	}
	t.Log("the config changes")
	before := now.DeepCopy()
	now.Spec.Config = "a: b"
	must(t, w.Patch(t.Context(), now, client.MergeFrom(before)))
	w.state(p, packagesv1.StateUpdating)
	w.ready(p)
	now = w.state(p, packagesv1.StateInstalled)
	if now.Status.Spec.Config != "a: b" || now.Status.Detail != "" {
		t.Errorf("status: %+v", now.Status)
	}
}

func TestUpgradeInTheNewestBundleIsReported(t *testing.T) {
	w := newWorld(t)
	w.bundle(1, pack("hello", "0.1.0"))
	c := w.controller(w.bundleName(1))
	p := w.install("my", packagesv1.PackageSpec{PackageName: "hello", TargetNamespace: "x"})
	now := w.finish(p, digest("hello0.1.0"))
	if len(now.Status.UpgradesAvailable) != 0 {
		t.Errorf("available upgrades: %+v", now.Status.UpgradesAvailable)
	}
	c.Status.LatestBundle = w.bundleName(10)
	must(t, w.Status().Update(t.Context(), c))
	w.bundle(10, pack("hello", "0.2.0"))
	now = w.until(p, "an upgrade is available", func(p *packagesv1.Package) bool { return len(p.Status.UpgradesAvailable) > 0 })
	want := []packagesv1.PackageAvailableUpgrade{{Version: "0.2.0", Tag: w.bundleName(10)}}
	if diff := cmp.Diff(want, now.Status.UpgradesAvailable); diff != "" {
		t.Errorf("available upgrades (-want +got):\n%s", diff)
	}
	w.activate(w.bundleName(10))
	now = w.finish(p, digest("hello0.2.0"))
	if len(now.Status.UpgradesAvailable) != 0 {
		t.Errorf("available upgrades after the upgrade: %+v", now.Status.UpgradesAvailable)
	}
}
