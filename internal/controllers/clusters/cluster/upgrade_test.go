package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/model/lockstep"
)

const (
	oldKubernetes = "v1.35.4"
	newKubernetes = "v1.36.3"
)

// running creates a cluster of the old version whose machines are ready.
func (w *world) running(name string) {
	w.Helper()
	w.make(name)
	w.change(name, func(c *anywherev1.Cluster) {
		c.Spec.KubernetesVersion = "1.35"
		c.Spec.WorkerNodeGroupConfigurations = []anywherev1.WorkerNodeGroupConfiguration{{Name: "md-0", Count: ptr.To(1)}}
	})
	w.reconcile(name)
	w.rollOut(name)
	w.rollOutWorkers(name)
	w.reconcile(name)
}

// rollOutWorkers plays Cluster API: the group has one machine, which is up to date.
func (w *world) rollOutWorkers(name string) {
	w.Helper()
	d := w.workers(name)
	d.Status.ObservedGeneration = d.Generation
	d.Status.Replicas, d.Status.ReadyReplicas = ptr.To[int32](1), ptr.To[int32](1)
	meta.SetStatusCondition(&d.Status.Conditions, metav1.Condition{Type: clusterv1.MachineDeploymentAvailableCondition, Status: metav1.ConditionTrue, Reason: "Available"})
	w.must(w.Status().Update(w.Context(), d))
	labels := d.Spec.Template.Labels
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: name + "-set-" + strings.ReplaceAll(d.Spec.Template.Spec.Version, ".", "-"), Labels: labels}}
	set.Spec.ClusterName, set.Spec.Selector, set.Spec.Template = name, d.Spec.Selector, d.Spec.Template
	w.must(client.IgnoreAlreadyExists(w.Create(w.Context(), set)))
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: name + "-worker"}}
	w.must(client.IgnoreNotFound(w.Delete(w.Context(), m.DeepCopy())))
	m.Labels = map[string]string{clusterv1.MachineSetNameLabel: set.Name}
	for k, v := range labels {
		m.Labels[k] = v
	}
	m.Spec = d.Spec.Template.Spec
	m.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: ptr.To("data")}
	w.must(w.Create(w.Context(), m))
}

func (w *world) workers(name string) *clusterv1.MachineDeployment {
	w.Helper()
	d := &clusterv1.MachineDeployment{}
	w.must(w.Get(w.Context(), system(name+"-md-0"), d))
	return d
}

// release creates a release that is ready on a cluster.
func (w *world) release(cluster, name string, change func(*addonsv1.HelmReleaseProxy)) *addonsv1.HelmReleaseProxy {
	w.Helper()
	r := &addonsv1.HelmReleaseProxy{ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: cluster + "-" + name}}
	r.Spec.ClusterRef.Name, r.Spec.ClusterRef.Namespace = cluster, anywherev1.SystemNamespace
	r.Spec.ChartName, r.Spec.RepoURL = name, "oci://registry.example.com"
	r.Status.Applied = &addonsv1.AppliedRelease{Fingerprint: "f", Chart: "c", Version: "1.0.0"}
	change(r)
	status := r.Status
	w.must(w.Create(w.Context(), r))
	r.Status = status
	w.setReady(r, metav1.ConditionTrue)
	w.Cleanup(func() { _ = w.Delete(w.Context(), r) })
	return r
}

func (w *world) setReady(r *addonsv1.HelmReleaseProxy, status metav1.ConditionStatus) {
	w.Helper()
	r.Status.ObservedGeneration = r.Generation
	meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{Type: clusterv1.ReadyCondition, Status: status, Reason: "Test", Message: "It is " + string(status)})
	w.must(w.Status().Update(w.Context(), r))
}

// stage makes a release declare its stage in its chart.
func stage(s addonsv1.UpgradeStage) func(*addonsv1.HelmReleaseProxy) {
	return func(r *addonsv1.HelmReleaseProxy) { r.Status.Applied.UpgradeStage = s }
}

// upgrading returns the versions of both kinds of machines, the step, and what the cluster waits
// for.
func (w *world) upgrading(name string) (controlPlane, workers string, step lockstep.Step, condition string) {
	w.Helper()
	c := &clusterv1.Cluster{}
	w.must(w.Get(w.Context(), system(name), c))
	if u := lockstep.Of(c); u != nil {
		step = u.Step
	}
	if found := meta.FindStatusCondition(w.cluster(name).Status.Conditions, anywherev1.KubernetesUpgraded); found != nil {
		condition = found.Reason + ": " + found.Message
	}
	return w.controlPlane(name).Spec.Version, w.workers(name).Spec.Template.Spec.Version, step, condition
}

func (w *world) expect(name, controlPlane, workers string, step lockstep.Step, condition string) {
	w.Helper()
	gotControlPlane, gotWorkers, gotStep, gotCondition := w.upgrading(name)
	if gotControlPlane != controlPlane || gotWorkers != workers || gotStep != step || !strings.Contains(gotCondition, condition) {
		w.Errorf("control plane %s, workers %s, step %q, condition %q; want %s, %s, %q, %q",
			gotControlPlane, gotWorkers, gotStep, gotCondition, controlPlane, workers, step, condition)
	}
}

func TestUpgradeWaitsForAddOnsOfEachStage(t *testing.T) {
	w := newWorld(t)
	w.c.Charts = "" // Nobody installs the Pod network here.
	w.running("staged")
	before := w.release("staged", "before", stage(addonsv1.BeforeControlPlane))
	between := w.release("staged", "between-ccm", func(*addonsv1.HelmReleaseProxy) {})
	after := w.release("staged", "after", stage(addonsv1.AfterWorkers))
	for _, r := range []*addonsv1.HelmReleaseProxy{before, between, after} {
		w.setReady(r, metav1.ConditionFalse)
	}
	objects := w.objects("staged")
	w.reconcile("staged")
	if diff := cmp.Diff(objects, w.objects("staged")); diff != "" {
		t.Errorf("add-ons matter without an upgrade:\n%s", diff)
	}
	w.expect("staged", oldKubernetes, oldKubernetes, "", "")

	w.change("staged", func(c *anywherev1.Cluster) { c.Spec.KubernetesVersion = "1.36" })
	w.reconcile("staged")
	w.expect("staged", oldKubernetes, oldKubernetes, lockstep.BeforeControlPlane, "WaitingForAddOns: Waiting for add-ons before the control plane is upgraded to Kubernetes v1.36.3: HelmReleaseProxy staged-before: It is False")
	if ready := meta.FindStatusCondition(w.cluster("staged").Status.Conditions, anywherev1.Ready); ready.Reason != anywherev1.WaitingForAddOnsReason {
		t.Errorf("Ready is %+v", ready)
	}
	objects = w.objects("staged")
	w.reconcile("staged")
	if diff := cmp.Diff(objects, w.objects("staged")); diff != "" {
		t.Errorf("a waiting upgrade wrote:\n%s", diff)
	}

	for _, count := range []int{2, 1} {
		w.change("staged", func(c *anywherev1.Cluster) { c.Spec.WorkerNodeGroupConfigurations[0].Count = ptr.To(count) })
		w.reconcile("staged")
		if got := ptr.Deref(w.workers("staged").Spec.Replicas, 0); int(got) != count {
			t.Errorf("there are to be %d workers, want %d although the upgrade waits", got, count)
		}
	}
	w.rollOutWorkers("staged")

	w.setReady(before, metav1.ConditionTrue)
	w.reconcile("staged")
	w.expect("staged", newKubernetes, oldKubernetes, lockstep.ControlPlane, "RollingUpgradeInProgress: The control plane is upgraded")
	w.setReady(before, metav1.ConditionFalse) // It no longer matters.
	w.rollOut("staged")
	w.reconcile("staged")
	w.expect("staged", newKubernetes, oldKubernetes, lockstep.BeforeWorkers, "WaitingForAddOns: Waiting for add-ons before workers are upgraded to Kubernetes v1.36.3: HelmReleaseProxy staged-between-ccm")
	if workers := meta.FindStatusCondition(w.cluster("staged").Status.Conditions, anywherev1.WorkersReady); workers.Reason != anywherev1.WaitingForAddOnsReason {
		t.Errorf("WorkersReady is %+v", workers)
	}

	w.setReady(between, metav1.ConditionTrue)
	w.reconcile("staged")
	w.expect("staged", newKubernetes, newKubernetes, lockstep.Workers, "RollingUpgradeInProgress: Workers are upgraded")
	w.rollOutWorkers("staged")
	w.reconcile("staged")
	w.expect("staged", newKubernetes, newKubernetes, lockstep.AfterWorkers, "WaitingForAddOns: Waiting for add-ons after the upgrade to Kubernetes v1.36.3: HelmReleaseProxy staged-after")
	w.setReady(after, metav1.ConditionTrue)
	w.reconcile("staged")
	w.expect("staged", newKubernetes, newKubernetes, "", "UpToDate")
}

func TestUpgradeReportsAnAddOnThatIsNeverReady(t *testing.T) {
	w := newWorld(t)
	w.running("stuck")
	w.release("stuck", "web", func(r *addonsv1.HelmReleaseProxy) { r.Status.Applied.Kubernetes = "< 1.36" })
	w.change("stuck", func(c *anywherev1.Cluster) {
		c.Spec.KubernetesVersion = "1.36"
		c.Annotations[anywherev1.AddOnWaitTimeoutAnnotation] = "10m"
	})
	w.reconcile("stuck")
	w.expect("stuck", oldKubernetes, oldKubernetes, lockstep.BeforeControlPlane, "WaitingForAddOns: Waiting for add-ons before the control plane is upgraded to Kubernetes v1.36.3: HelmReleaseProxy stuck-web: version 1.0.0 of its chart supports Kubernetes < 1.36 only")
	result, err := w.c.Reconcile(w.Context(), w.request("stuck"))
	if err != nil || result.RequeueAfter != 10*time.Minute {
		t.Errorf("reconciled again after %s, %v", result.RequeueAfter, err)
	}

	w.c.Clock = clocktesting.NewFakePassiveClock(noon.Add(10 * time.Minute))
	w.reconcile("stuck")
	w.expect("stuck", oldKubernetes, oldKubernetes, lockstep.BeforeControlPlane, "AddOnsTimedOut: ")
	if events := w.takeEvents(); !slices.ContainsFunc(events, func(e string) bool { return strings.HasPrefix(e, "Warning AddOnsTimedOut") }) {
		t.Errorf("events: %v", events)
	}

	w.change("stuck", func(c *anywherev1.Cluster) { c.Annotations[anywherev1.SkipAddOnWaitAnnotation] = "1.36" })
	w.reconcile("stuck")
	w.expect("stuck", newKubernetes, oldKubernetes, lockstep.ControlPlane, "RollingUpgradeInProgress")
	if events := w.takeEvents(); !slices.ContainsFunc(events, func(e string) bool {
		return strings.HasPrefix(e, "Warning AddOnsSkipped") && strings.Contains(e, "stuck-web")
	}) {
		t.Errorf("events: %v", events)
	}
}

// TestUpgradeWaitsForHelmChartProxies checks what is specific to add-ons that follow the version of
// the cluster: a release must have been rendered for it, and a new add-on must be installed.
func TestUpgradeWaitsForHelmChartProxies(t *testing.T) {
	w := newWorld(t)
	w.running("charts")
	chart := &addonsv1.HelmChartProxy{ObjectMeta: metav1.ObjectMeta{
		Namespace: anywherev1.SystemNamespace, Name: "before", Annotations: map[string]string{addonsv1.UpgradeStageAnnotation: string(addonsv1.BeforeControlPlane)},
	}}
	chart.Spec.ClusterSelector.MatchLabels = map[string]string{clusterv1.ClusterNameLabel: "charts"}
	chart.Spec.ChartName, chart.Spec.RepoURL = "before", "oci://registry.example.com"
	w.must(w.Create(w.Context(), chart))
	w.Cleanup(func() { _ = w.Delete(w.Context(), chart) })
	w.change("charts", func(c *anywherev1.Cluster) { c.Spec.KubernetesVersion = "1.36" })
	w.reconcile("charts")
	w.expect("charts", oldKubernetes, oldKubernetes, lockstep.BeforeControlPlane, "HelmChartProxy before: not installed yet")

	r := w.release("charts", "before", func(r *addonsv1.HelmReleaseProxy) {
		r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(chart, addonsv1.GroupVersion.WithKind("HelmChartProxy"))}
	})
	w.reconcile("charts")
	w.expect("charts", oldKubernetes, oldKubernetes, lockstep.BeforeControlPlane, "HelmChartProxy before: not rendered for v1.36.3 yet")
	r.Annotations = map[string]string{addonsv1.KubernetesVersionAnnotation: newKubernetes}
	w.must(w.Update(w.Context(), r))
	w.reconcile("charts")
	w.expect("charts", newKubernetes, oldKubernetes, lockstep.ControlPlane, "")
}

// TestUpgradeWaitsForPackages checks that packages wait for the bundle of the new version if that
// is activated automatically, and that releases of others that were never permitted don't matter.
func TestUpgradeWaitsForPackages(t *testing.T) {
	w := newWorld(t)
	w.running("packs")
	namespace := packagesv1.NamespacePrefix + "packs"
	p := &packagesv1.Package{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "agent", Annotations: map[string]string{addonsv1.UpgradeStageAnnotation: string(addonsv1.BeforeWorkers)},
	}}
	p.Spec.PackageName = "agent"
	w.packagesEnabled("packs")
	w.must(w.Create(w.Context(), p))
	installed := func(r *addonsv1.HelmReleaseProxy) {
		r.Namespace = namespace
		r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(p, packagesv1.GroupVersion.WithKind("Package"))}
	}
	r := w.release("packs", "agent", installed)
	w.release("packs", "csi", func(r *addonsv1.HelmReleaseProxy) { // Anybody can create one.
		r.Namespace, r.Status.Applied = w.ns, nil
	})
	w.change("packs", func(c *anywherev1.Cluster) { c.Spec.KubernetesVersion = "1.36" })
	w.reconcile("packs")
	w.rollOut("packs")
	w.activate("packs", "v1-35-1", "old")
	w.reconcile("packs")
	w.expect("packs", newKubernetes, oldKubernetes, lockstep.BeforeWorkers, "Package agent: waiting for a bundle for Kubernetes v1.36.3")
	w.activate("packs", "v1-36-1", "sha256:new")
	w.reconcile("packs")
	w.expect("packs", newKubernetes, oldKubernetes, lockstep.BeforeWorkers, "Package agent: not installed from bundle v1-36-1 yet")
	r.Spec.Version = "sha256:new"
	w.must(w.Update(w.Context(), r))
	w.setReady(r, metav1.ConditionTrue)
	w.reconcile("packs")
	w.expect("packs", newKubernetes, newKubernetes, lockstep.Workers, "")
}

// packagesEnabled lets the controller create the objects for packages.
func (w *world) packagesEnabled(name string) {
	w.Helper()
	c := &clusterv1.Cluster{}
	w.must(w.Get(w.Context(), system(name), c))
	c.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	w.must(w.Status().Update(w.Context(), c))
	w.reconcile(name)
}

// activate activates a bundle that has a package with a digest.
func (w *world) activate(name, bundle, digest string) {
	w.Helper()
	b := &packagesv1.PackageBundle{ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: bundle}}
	source := packagesv1.BundlePackageSource{Repository: "agent", Versions: []packagesv1.SourceVersion{{Name: "1.0.0", Digest: digest}}}
	b.Spec.Packages = []packagesv1.BundlePackage{{Name: "agent", Source: source}}
	w.must(client.IgnoreAlreadyExists(w.Create(w.Context(), b)))
	c := &packagesv1.PackageBundleController{}
	w.must(w.Get(w.Context(), client.ObjectKey{Namespace: packagesv1.Namespace, Name: name}, c))
	c.Spec.ActiveBundle, c.Spec.UpgradePolicy = bundle, packagesv1.UpgradeAlways
	w.must(w.Update(w.Context(), c))
}
