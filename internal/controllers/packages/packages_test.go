package packages_test

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/test/managertest"
	"github.com/drover-dev/drover/internal/test/packagestest"
)

func TestPackageOnTwoClusters(t *testing.T) {
	w := newWorld(t)
	w.program = managertest.Checked
	w.begin()
	defer w.clean()
	first := w.publish(1, pack("hello-eks-anywhere", "0.1.0", w.chart("hello-eks-anywhere", "0.1.0")))
	w.use(0, first.Name)
	w.use(1, first.Name)
	billy, tlhowe := w.install(0, "my", "hello-eks-anywhere"), w.install(1, "my", "hello-eks-anywhere")
	w.awaitInstalled(billy, "0.1.0")
	w.awaitInstalled(tlhowe, "0.1.0")
	for cluster := range 2 {
		if got := w.text(cluster, "my"); got != "hello 0.1.0 images.example.com" {
			t.Errorf("cluster %d has %q", cluster, got)
		}
	}
	if n := w.registry.Count("GET /v2/charts/hello-eks-anywhere/blobs/"); n != 1 {
		t.Errorf("the chart was downloaded %d times for two clusters, want once", n)
	}

	t.Log("the config of one cluster changes")
	w.must(w.Patch(t.Context(), billy, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"config":"title: welcome\n"}}`))))
	w.until("the new values are installed", func() bool { return w.text(0, "my") == "welcome 0.1.0 images.example.com" })
	w.awaitInstalled(billy, "0.1.0")

	t.Log("a missing bundle with another repository is activated on one cluster")
	moved := pack("hello-eks-anywhere", "0.2.0", w.chart("elsewhere/hello-eks-anywhere", "0.2.0"))
	moved.Source.Repository = "charts/elsewhere/hello-eks-anywhere"
	second := w.publish(2, moved)
	began := time.Now()
	w.activate(0, second.Name)
	w.until("Helm starts", func() bool { return w.reached(0, "my", "3") })
	t.Logf("time from the activation of a bundle in the registry to the first Helm action: %s", time.Since(began).Round(time.Millisecond))
	w.awaitInstalled(billy, "0.2.0")
	if got := w.text(0, "my") + ", " + w.text(1, "my"); got != "welcome 0.2.0 images.example.com, hello 0.1.0 images.example.com" {
		t.Errorf("clusters have %q", got)
	}
	if diff := cmp.Diff([]string{"1 deployed"}, w.records(1, "my")); diff != "" {
		t.Errorf("records of the other cluster (-want +got):\n%s", diff)
	}

	t.Log("the first bundle is activated again")
	began = time.Now()
	w.activate(0, first.Name)
	w.until("Helm starts", func() bool { return w.reached(0, "my", "4") })
	t.Logf("time from the activation of a stored bundle to the first Helm action: %s", time.Since(began).Round(time.Millisecond))
	w.awaitInstalled(billy, "0.1.0")
	if diff := cmp.Diff([]string{"3 superseded", "4 deployed"}, w.records(0, "my")); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	w.must(w.Delete(t.Context(), billy))
	w.gone(billy)
	if got := w.text(0, "my"); got != "" || len(w.records(0, "my")) != 0 {
		t.Errorf("got %q and records %v, want none", got, w.records(0, "my"))
	}
	if got := w.text(1, "my"); got != "hello 0.1.0 images.example.com" {
		t.Errorf("the other cluster has %q", got)
	}
}

func TestAdmissionRejectsInvalidObjects(t *testing.T) {
	w := newWorld(t)
	w.begin()
	defer w.clean()
	b := w.publish(1, pack("hello", "0.1.0", w.chart("hello", "0.1.0")), pack("round", "1", "sha256:"+strings.Repeat("0", 64), "round"))
	w.use(0, b.Name)
	w.until("the bundle is stored", func() bool { return w.Get(t.Context(), client.ObjectKeyFromObject(b), b) == nil })
	named := func(p packagesv1.PackageSpec) *packagesv1.Package {
		return &packagesv1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: w.clusters[0] + "-x"}, Spec: p}
	}
	another := func(build int) *packagesv1.PackageBundle {
		other := b.DeepCopy()
		other.ObjectMeta = metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: w.bundleName(build)}
		return other
	}
	unsigned, changed, stranger, garbage := another(2), another(3), another(4), another(5)
	w.signer.Sign(t, changed)
	changed.Spec.Packages[0].Source.Versions[0].Digest = "sha256:" + strings.Repeat("6", 64)
	packagestest.NewSigner(t).Sign(t, stranger)
	w.signer.Sign(t, garbage)
	garbage.Annotations[packagesv1.SignatureAnnotation] = "!"
	rejected := func(b *packagesv1.PackageBundle, why string) string {
		return fmt.Sprintf("package %s failed validation with error: %s", b.Name, why)
	}
	for _, tc := range []struct {
		object client.Object
		want   string
	}{
		{named(packagesv1.PackageSpec{PackageName: "y"}), fmt.Sprintf("package %s-x failed validation with error: package not found in bundle (%s): y", w.clusters[0], b.Name)},
		{
			named(packagesv1.PackageSpec{PackageName: "hello", PackageVersion: "7"}),
			fmt.Sprintf("package %s-x failed validation with error: package version not found in bundle (%s): hello @ 7", w.clusters[0], b.Name),
		},
		{named(packagesv1.PackageSpec{PackageName: "round"}), "dependency cycle"},
		{unsigned, rejected(unsigned, "Missing signature")},
		{changed, rejected(changed, "The signature is invalid for the configured public key: ")},
		{stranger, rejected(stranger, "The signature is invalid for the configured public key: ")},
		{garbage, rejected(garbage, "signature in metadata isn't base64 encoded")},
		{&packagesv1.PackageBundleController{
			ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: "z"}, Spec: packagesv1.PackageBundleControllerSpec{ActiveBundle: "latest"},
		}, `activeBundle "latest" not present on cluster`},
	} {
		err := w.Create(t.Context(), tc.object)
		status := &apierrors.StatusError{}
		if !errors.As(err, &status) || !strings.Contains(status.ErrStatus.Message, tc.want) || status.ErrStatus.Code != http.StatusBadRequest {
			t.Errorf("error is %v, want 400 with %q", err, tc.want)
		}
	}
	good := another(6)
	w.signer.Sign(t, good)
	w.must(w.Create(t.Context(), good, client.DryRunAll))
	forged := b.DeepCopy()
	forged.Spec.Packages[0].Name = "evil"
	if err := w.Patch(t.Context(), forged, client.MergeFrom(b)); err == nil || !strings.Contains(err.Error(), "The signature is invalid") {
		t.Errorf("a stored bundle was changed: %v", err)
	}
}

func TestBundleForAnotherKubernetesIsRejectedBeforeTheClusterIsReachable(t *testing.T) {
	w := newWorld(t)
	w.begin()
	defer w.clean()
	key := metav1.ObjectMeta{Namespace: packagesv1.KubeconfigNamespace, Name: fmt.Sprintf("planned%d", w.number)}
	paused := *key.DeepCopy()
	paused.Annotations = map[string]string{clusterv1.PausedAnnotation: "true"}
	infrastructure := clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "PacketMachineTemplate", Name: key.Name}
	plane := &controlplanev1.KubeadmControlPlane{ObjectMeta: paused, Spec: controlplanev1.KubeadmControlPlaneSpec{
		Replicas: ptr.To[int32](1), Version: "v1.30.2",
		MachineTemplate: controlplanev1.KubeadmControlPlaneMachineTemplate{Spec: controlplanev1.KubeadmControlPlaneMachineTemplateSpec{InfrastructureRef: infrastructure}},
	}}
	cluster := &clusterv1.Cluster{ObjectMeta: paused, Spec: clusterv1.ClusterSpec{
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "PacketCluster", Name: key.Name},
		ControlPlaneRef:   clusterv1.ContractVersionedObjectReference{APIGroup: controlplanev1.GroupVersion.Group, Kind: "KubeadmControlPlane", Name: key.Name},
	}}
	for _, o := range []client.Object{plane, cluster} {
		w.must(w.Create(t.Context(), o))
		t.Cleanup(func() { w.must(w.Delete(context.WithoutCancel(t.Context()), o)) })
	}
	activate := func(cluster, bundle string) error {
		return w.Create(t.Context(), &packagesv1.PackageBundleController{
			ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: cluster}, Spec: packagesv1.PackageBundleControllerSpec{ActiveBundle: bundle},
		}, client.DryRunAll)
	}
	w.until("the bundle is rejected", func() bool {
		err := activate(key.Name, "v1-29-7")
		return err != nil && strings.Contains(err.Error(), "kuberneetes version v1-30 does not match v1-29-7")
	})
	for cluster, bundle := range map[string]string{key.Name: "v1-30-7", w.clusters[0]: "v1-29-7", "unknown": "v1-29-7"} {
		if err := activate(cluster, bundle); err != nil {
			t.Errorf("%s on %s: %v", bundle, cluster, err)
		}
	}
}

func TestKilledManagerInstallsOnce(t *testing.T) {
	w := newWorld(t)
	w.begin()
	defer w.clean()
	versions := []string{"1.0.0", "2.0.0"}
	var bundles []*packagesv1.PackageBundle
	for i, version := range versions {
		bundles = append(bundles, w.publish(i+1, pack("base", version, w.chart("base", version)), pack("app", version, w.chart("app", version), "base")))
	}
	for cluster := range 2 {
		w.use(cluster, bundles[0].Name)
	}
	const each = 5
	var packs []*packagesv1.Package
	for cluster := range 2 {
		for i := range each {
			packs = append(packs, w.install(cluster, fmt.Sprintf("app%d", i), "app"))
		}
	}
	random := mathrand.New(mathrand.NewPCG(uint64(time.Now().UnixNano()), 0))
	done := func(version string) int {
		n := 0
		for _, p := range packs {
			if w.Get(t.Context(), client.ObjectKeyFromObject(p), p) == nil && p.Status.CurrentVersion == version && p.Status.State == packagesv1.StateInstalled {
				n++
			}
		}
		return n
	}
	interrupt := func(progress func() int) {
		for range 3 {
			at := min(progress()+random.IntN(4), len(packs))
			w.until("some progress", func() bool { return progress() >= at })
			w.manager.Kill()
			w.start()
		}
	}
	for i, version := range versions {
		for cluster := range 2 {
			w.activate(cluster, bundles[i].Name)
		}
		interrupt(func() int { return done(version) })
		for _, p := range packs {
			w.awaitInstalled(p, version)
		}
	}
	for cluster := range 2 {
		for i := range each {
			if diff := cmp.Diff([]string{"1 superseded", "2 deployed"}, w.records(cluster, fmt.Sprintf("app%d", i))); diff != "" {
				t.Errorf("records of app%d on cluster %d (-want +got):\n%s", i, cluster, diff)
			}
		}
		if diff := cmp.Diff([]string{"1 superseded", "2 deployed"}, w.records(cluster, "base")); diff != "" {
			t.Errorf("records of base on cluster %d (-want +got):\n%s", cluster, diff)
		}
	}
	for _, p := range packs {
		w.must(w.Delete(t.Context(), p))
	}
	left := func() int {
		list := &packagesv1.PackageList{}
		w.must(w.List(t.Context(), list, client.InNamespace(packagesv1.Namespace)))
		return len(list.Items)
	}
	interrupt(func() int { return len(packs) - min(left(), len(packs)) })
	w.until("all packages and their dependencies are deleted", func() bool { return left() == 0 })
	for cluster := range 2 {
		maps, err := servers.workloads.All()[cluster].Clientset(t).CoreV1().ConfigMaps("from-chart").List(t.Context(), metav1.ListOptions{})
		w.must(err)
		for _, m := range maps.Items {
			if m.Name != "kube-root-ca.crt" && (strings.HasPrefix(m.Name, "app") || m.Name == "base") {
				t.Errorf("%s still exists on cluster %d, want it deleted", m.Name, cluster)
			}
		}
	}
}
