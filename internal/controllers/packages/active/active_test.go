package active

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/test/artifacttest"
)

func TestNewestBundleIsDownloadedAndActivated(t *testing.T) {
	w := newWorld(t)
	w.publish(latest, w.bundle(1), "1.0.0")
	w.connect()
	w.start()
	o := w.active(w.bundle(1))
	if o.Status.KubernetesVersion != "1.36" || o.Status.LatestBundle != w.bundle(1) || o.Status.LastCheck == nil {
		t.Errorf("status %+v", o.Status)
	}
	b := w.stored(w.bundle(1))
	if got := b.Annotations[packagesv1.DownloadedAnnotation]; got != w.registry.Host+"/charts/bundles:"+latest {
		t.Errorf("downloaded from %q", got)
	}
	if err := bundle.Verify(b, w.signer.Keys); err != nil {
		t.Errorf("verifying the stored bundle: %v", err)
	}
	namespace := &corev1.Namespace{}
	w.must(w.client.Get(t.Context(), client.ObjectKey{Name: packagesv1.NamespacePrefix + w.name}, namespace))
	if namespace.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
		t.Errorf("labels of the namespace are %v", namespace.Labels)
	}
	if recorded := w.events.Of(w.name); !strings.Contains(recorded, "Activated: ") {
		t.Errorf("events: %s", recorded)
	}
}

func TestUnchangedObjectMakesNoRequest(t *testing.T) {
	w := newWorldAlone(t)
	w.publish(latest, w.bundle(1), "1.0.0")
	w.connect()
	w.start()
	web := w.namespaceExists("web")
	w.install("hello", web)
	w.must(w.client.Create(t.Context(), w.mirrored("canary")))
	w.until("the credentials are copied", func() bool { return w.copies()[web] == "canary" })
	w.await("the credentials are synced", func(o *packagesv1.PackageBundleController) bool {
		return isTrue(o.Status.Conditions, packagesv1.CredentialsSynced)
	})
	before := w.active(w.bundle(1))
	w.front.Requests()
	registry, plane := len(w.registry.Requests()), w.requests.Load()
	for range 5 {
		result, err := w.controller.Reconcile(t.Context(), named(w.name)[0])
		if err != nil || result.RequeueAfter < 23*time.Hour || result.RequeueAfter > 27*time.Hour {
			t.Errorf("Reconcile() = %+v, %v", result, err)
		}
	}
	if got := w.front.Requests(); len(got) > 0 {
		t.Errorf("requests to the cluster: %q", got)
	}
	if got := len(w.registry.Requests()) - registry; got > 0 {
		t.Errorf("%d requests to the registry", got)
	}
	if got := w.requests.Load() - plane; got > 0 {
		t.Errorf("%d requests to the management plane", got)
	}
	if after := w.get(); after.ResourceVersion != before.ResourceVersion {
		t.Error("the object was written")
	}
}

func TestRestartMakesNoRequestToTheRegistry(t *testing.T) {
	w := newWorldAlone(t)
	w.publish(latest, w.bundle(1), "1.0.0")
	w.connect()
	w.start()
	before := w.active(w.bundle(1))
	asked := len(w.registry.Requests())
	w.controller.memory.Forget(named(w.name)[0].NamespacedName) // as a restart does
	w.change(func(o *packagesv1.PackageBundleController) { o.Spec.LogLevel = new(int32) })
	w.await("the change is observed", func(o *packagesv1.PackageBundleController) bool {
		return o.Status.ObservedGeneration == o.Generation && o.Status.State == packagesv1.ControllerActive
	})
	if got := len(w.registry.Requests()) - asked; got > 0 {
		t.Errorf("%d requests to the registry", got)
	}
	if after := w.get(); !after.Status.LastCheck.Equal(before.Status.LastCheck) {
		t.Error("lastCheck changed")
	}
}

func TestOnlyNewerBundleIsReportedAsUpgrade(t *testing.T) {
	w := newWorld(t)
	w.publish(w.bundle(5), w.bundle(5), "1.0.0")
	w.publish(latest, w.bundle(10), "2.0.0")
	w.connect()
	w.start(activeBundle(w.bundle(5)), every(time.Second))
	w.await("an upgrade is available", func(o *packagesv1.PackageBundleController) bool {
		return o.Status.State == packagesv1.ControllerUpgradeAvailable && o.Status.Detail == w.bundle(10)+" available" && o.Spec.ActiveBundle == w.bundle(5) &&
			isTrue(o.Status.Conditions, packagesv1.Ready)
	})
	w.publish(latest, w.bundle(4), "2.0.0")
	w.await("no upgrade is available", func(o *packagesv1.PackageBundleController) bool {
		return o.Status.State == packagesv1.ControllerActive && o.Status.LatestBundle == w.bundle(4) && o.Status.Detail == ""
	})
	w.change(func(o *packagesv1.PackageBundleController) { o.Spec.UpgradePolicy = packagesv1.UpgradeAlways })
	w.publish(latest, w.bundle(11), "3.0.0")
	w.active(w.bundle(11))
	if recorded := w.events.Of(w.name); !strings.Contains(recorded, "UpgradeAvailable: ") || !strings.Contains(recorded, "according to the upgrade policy") {
		t.Errorf("events: %s", recorded)
	}
}

func TestPatchPolicyKeepsTheMinorVersionOfInstalledPackages(t *testing.T) {
	w := newWorld(t)
	w.publish(w.bundle(1), w.bundle(1), "1.0.0")
	w.publish(latest, w.bundle(2), "1.1.0")
	w.connect()
	w.install("hello", "web")
	w.start(activeBundle(w.bundle(1)), every(time.Second), func(s *packagesv1.PackageBundleControllerSpec) { s.UpgradePolicy = packagesv1.UpgradePatch })
	w.await("a minor version is available but not activated", func(o *packagesv1.PackageBundleController) bool {
		return o.Status.Detail == w.bundle(2)+" available" && o.Spec.ActiveBundle == w.bundle(1)
	})
	w.publish(latest, w.bundle(3), "1.0.9")
	w.active(w.bundle(3))
}

func TestActiveBundleIsDownloadedByName(t *testing.T) {
	w := newWorld(t)
	w.publish(latest, w.bundle(1), "1.0.0")
	w.connect()
	w.start(activeBundle(w.bundle(1)), every(time.Second))
	w.active(w.bundle(1))
	w.change(func(o *packagesv1.PackageBundleController) { o.Spec.ActiveBundle = w.bundle(0) })
	w.await("the missing bundle is reported", func(o *packagesv1.PackageBundleController) bool {
		return strings.HasPrefix(o.Status.Detail, `activeBundle "`+w.bundle(0)+`" not present on cluster: pulling package bundle: fetch manifest: `) &&
			has(o, packagesv1.BundleActive, packagesv1.NotPresentReason, "404")
	})
	w.publish(w.bundle(0), w.bundle(0), "0.9.0")
	w.await("the bundle is active", func(o *packagesv1.PackageBundleController) bool {
		return isTrue(o.Status.Conditions, packagesv1.BundleActive) && o.Status.Detail == w.bundle(1)+" available"
	})
	if from := w.stored(w.bundle(0)).Annotations[packagesv1.DownloadedAnnotation]; !strings.HasSuffix(from, ":"+w.bundle(0)) {
		t.Errorf("downloaded from %q", from)
	}
	w.must(w.client.Delete(t.Context(), w.stored(w.bundle(0))))
	w.until("a deleted bundle is downloaded again", func() bool { b := w.stored(w.bundle(0)); return b != nil && b.DeletionTimestamp == nil })
}

func TestUntrustedBundleIsNotStored(t *testing.T) {
	w := newWorld(t)
	w.publish(latest, w.bundle(1), "1.0.0")
	w.connect()
	w.start(every(time.Second))
	w.active(w.bundle(1))
	w.publish(latest, "v1-35-1", "1.0.0")
	w.await("a bundle for another version is rejected", func(o *packagesv1.PackageBundleController) bool {
		return has(o, packagesv1.RegistryReachable, packagesv1.BundleRefusedReason, `refers to a bundle for Kubernetes 1.35`)
	})
	w.registry.Push(t, forged(w))
	o := w.await("a bundle with an invalid signature is rejected", func(o *packagesv1.PackageBundleController) bool {
		return has(o, packagesv1.RegistryReachable, packagesv1.BundleRefusedReason, "The signature is invalid")
	})
	if o.Status.State != packagesv1.ControllerActive || o.Spec.ActiveBundle != w.bundle(1) || w.stored(w.bundle(2)) != nil {
		t.Errorf("state %q, active %q", o.Status.State, o.Spec.ActiveBundle)
	}
}

func TestBundleForNewerDroverIsNotActivated(t *testing.T) {
	w := newWorld(t)
	w.publish(latest, w.bundle(1), "1.0.0", func(b *packagesv1.PackageBundle) { b.Spec.MinVersion = "v0.6.0" })
	w.connect()
	w.start(every(time.Second))
	w.await("the required version is reported", func(o *packagesv1.PackageBundleController) bool {
		return has(o, packagesv1.BundleActive, packagesv1.NotPresentReason, "requires Drover v0.6.0") && o.Spec.ActiveBundle == ""
	})
	w.change(func(o *packagesv1.PackageBundleController) { o.Spec.ActiveBundle = w.bundle(1) })
	w.await("the required version of the active bundle is reported", func(o *packagesv1.PackageBundleController) bool {
		return has(o, packagesv1.BundleActive, packagesv1.UpgradeRequiredReason, "requires Drover v0.6.0")
	})
}

func TestBundleForAnotherKubernetesIsReported(t *testing.T) {
	w := newWorld(t)
	w.publish(latest, w.bundle(1), "1.0.0")
	w.publish("v1-35-7", "v1-35-7", "1.0.0")
	w.connect()
	w.start(activeBundle("v1-35-7"))
	w.await("the mismatch is reported", func(o *packagesv1.PackageBundleController) bool {
		return has(o, packagesv1.BundleActive, packagesv1.VersionMismatchReason, `is for Kubernetes 1.35 but the cluster runs 1.36`)
	})
}

func TestReconnectedClusterIsReportedAtOnce(t *testing.T) {
	w := newWorld(t)
	w.publish(w.bundle(1), w.bundle(1), "1.0.0")
	w.publish(latest, w.bundle(2), "1.0.0")
	w.connect()
	w.start(activeBundle(w.bundle(1)))
	upgradable := func(o *packagesv1.PackageBundleController) bool {
		return o.Status.State == packagesv1.ControllerUpgradeAvailable
	}
	w.await("an upgrade is available", upgradable)
	w.ways.set(w.cluster(), nil)
	o := w.await("the cluster is disconnected", func(o *packagesv1.PackageBundleController) bool {
		return o.Status.State == packagesv1.ControllerDisconnected
	})
	if !has(o, packagesv1.ClusterReachable, packagesv1.UnreachableReason, "is not connected") || !isTrue(o.Status.Conditions, packagesv1.BundleActive) {
		t.Errorf("conditions %+v", o.Status.Conditions)
	}
	back := time.Now()
	w.ways.set(w.cluster(), w.front.Config)
	w.await("the cluster is connected again", upgradable)
	t.Logf("reported after %s", time.Since(back))
	if recorded := w.events.Of(w.name); !strings.Contains(recorded, "Disconnected: ") {
		t.Errorf("events: %s", recorded)
	}
}

func TestHangingClusterIsReportedAsUnreachable(t *testing.T) {
	w := newWorld(t)
	w.publish(latest, w.bundle(1), "1.0.0")
	w.front.Hang()
	w.connect()
	w.start()
	w.await("the cluster is unreachable", func(o *packagesv1.PackageBundleController) bool {
		return o.Status.State == packagesv1.ControllerDisconnected && has(o, packagesv1.ClusterReachable, packagesv1.UnreachableReason, "is unreachable")
	})
	w.front.Resume()
	w.active(w.bundle(1))
}

func TestFailedRegistryIsRetried(t *testing.T) {
	w := newWorld(t)
	w.publish(latest, w.bundle(1), "1.0.0")
	w.registry.Fail(http.StatusServiceUnavailable)
	w.connect()
	w.start(every(time.Second))
	w.await("the failure is reported", func(o *packagesv1.PackageBundleController) bool {
		return o.Status.State == packagesv1.ControllerDisconnected && strings.HasPrefix(o.Status.Detail, "pulling package bundle: fetch manifest: ") &&
			has(o, packagesv1.RegistryReachable, packagesv1.UnreachableReason, "503") && isTrue(o.Status.Conditions, packagesv1.ClusterReachable)
	})
	w.registry.Resume()
	w.active(w.bundle(1))
}

func TestObjectInAnotherNamespaceIsIgnored(t *testing.T) {
	w := newWorld(t)
	o := &packagesv1.PackageBundleController{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: w.name}}
	w.must(w.client.Create(t.Context(), o))
	w.until("it is ignored", func() bool {
		w.must(client.IgnoreNotFound(w.client.Get(t.Context(), client.ObjectKeyFromObject(o), o)))
		return o.Status.State == packagesv1.ControllerIgnored
	})
	lint(t, o)
}

func TestUnknownAndAmbiguousClustersAreReported(t *testing.T) {
	w := newWorld(t)
	w.publish(latest, w.bundle(1), "1.0.0")
	w.start()
	w.await("the cluster is unknown", func(o *packagesv1.PackageBundleController) bool {
		return has(o, packagesv1.ClusterReachable, packagesv1.TargetUnknownReason, "not found")
	})
	w.connect()
	w.active(w.bundle(1))
	other := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: w.name}, Spec: clusterv1.ClusterSpec{
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "PacketCluster", Name: w.name},
	}}
	w.must(w.client.Create(t.Context(), other))
	w.await("the cluster is ambiguous", func(o *packagesv1.PackageBundleController) bool {
		return has(o, packagesv1.ClusterReachable, packagesv1.TargetAmbiguousReason, "in several namespaces")
	})
	w.change(func(o *packagesv1.PackageBundleController) { o.Spec.ClusterNamespace = "fleet" })
	w.active(w.bundle(1))
}

func TestFleetSharesOneCheck(t *testing.T) {
	w := newWorld(t)
	w.publish(latest, w.bundle(1), "1.0.0")
	before := len(w.registry.Requests())
	const fleet = 20
	first := w.name
	var names []string
	for n := range fleet {
		w.name = first + "-" + string(rune('a'+n))
		names = append(names, w.name)
		w.connect()
		w.start()
	}
	for _, w.name = range names {
		w.active(w.bundle(1))
	}
	heads, bodies := 0, 0
	for _, request := range w.registry.Requests()[before:] {
		switch {
		case strings.HasPrefix(request, "HEAD ") && strings.Contains(request, "/manifests/"):
			heads++
		case strings.Contains(request, "/manifests/"), strings.Contains(request, "/blobs/"):
			bodies++
		}
	}
	if heads != 1 || bodies != 2 {
		t.Errorf("%d clusters made %d checks and %d downloads, want 1 and 2", fleet, heads, bodies)
	}
}

func TestKubernetesUpgradeIsReported(t *testing.T) {
	w := newWorld(t)
	w.publish(latest, w.bundle(1), "1.0.0")
	w.publish("v1-37-latest", "v1-37-"+strings.TrimPrefix(w.bundle(1), "v1-36-"), "1.0.0")
	version := w.pretend()
	w.connect()
	w.start()
	w.active(w.bundle(1))
	plane := &controlplanev1.KubeadmControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: w.name, Labels: map[string]string{clusterv1.ClusterNameLabel: w.name}},
		Spec: controlplanev1.KubeadmControlPlaneSpec{Version: "v1.37.0", MachineTemplate: controlplanev1.KubeadmControlPlaneMachineTemplate{
			Spec: controlplanev1.KubeadmControlPlaneMachineTemplateSpec{InfrastructureRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "PacketMachineTemplate", Name: w.name,
			}},
		}},
	}
	w.must(w.client.Create(t.Context(), plane))
	version.Store("37+")
	plane.Status.Version = "v1.37.0"
	w.must(w.client.Status().Update(t.Context(), plane))
	w.await("the mismatch and the bundle for the new version are reported", func(o *packagesv1.PackageBundleController) bool {
		return o.Status.KubernetesVersion == "1.37" && strings.HasPrefix(o.Status.Detail, "v1-37-") && strings.HasSuffix(o.Status.Detail, " available") &&
			has(o, packagesv1.BundleActive, packagesv1.VersionMismatchReason, "is for Kubernetes 1.36 but the cluster runs 1.37")
	})
}

func TestChangedRegistryOrRepositoryIsCheckedAtOnce(t *testing.T) {
	w := newWorld(t)
	w.publish(latest, w.bundle(1), "1.0.0")
	w.connect()
	w.start(every(24 * time.Hour))
	w.active(w.bundle(1))
	newest := func(n int) {
		t.Helper()
		w.await("the newest bundle of the new location is reported", func(o *packagesv1.PackageBundleController) bool {
			return o.Status.LatestBundle == w.bundle(n) && o.Status.State == packagesv1.ControllerUpgradeAvailable
		})
	}
	was := w.registry
	w.registry = artifacttest.NewRegistry(t, artifacttest.RegistryOptions{})
	w.publish(latest, w.bundle(2), "1.1.0")
	asked := len(was.Requests())
	w.change(func(o *packagesv1.PackageBundleController) { o.Spec.Source.Registry = w.registry.Host })
	newest(2)
	if got := len(was.Requests()); got != asked {
		t.Errorf("the previous registry got %d requests", got-asked)
	}
	w.push("more/bundles", latest, w.signed(w.bundle(3), "1.2.0"))
	w.change(func(o *packagesv1.PackageBundleController) { o.Spec.Source.Repository = "charts/more/bundles" })
	newest(3)
}

func TestActiveBundleThatIsTheNewestIsDownloadedOnce(t *testing.T) {
	w := newWorld(t)
	text := w.signed(w.bundle(1), "1.0.0")
	w.push("bundles", latest, text)
	w.push("bundles", w.bundle(1), text)
	w.connect()
	w.start(activeBundle(w.bundle(1)))
	w.await("it is active and the newest", func(o *packagesv1.PackageBundleController) bool {
		return o.Status.LatestBundle == w.bundle(1) && has(o, packagesv1.BundleActive, packagesv1.ActiveReason, "")
	})
	if got := w.registry.Count("GET /v2/charts/bundles/blobs/"); got != 1 {
		t.Errorf("it was downloaded %d times, want once", got)
	}
}
