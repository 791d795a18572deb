package clusters_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/clusters/cluster"
	"github.com/drover-dev/drover/internal/test/managertest"
)

// workload is a creator's spec.
const workload = `
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: DockerDatacenterConfig
metadata: {name: NAME}
spec: {}
---
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: Cluster
metadata: {name: NAME}
spec:
  kubernetesVersion: "1.35"
  management: false
  controlPlaneConfiguration: {count: 1}
  workerNodeGroupConfigurations:
  - {name: md-0, count: 1}
  datacenterRef: {kind: DockerDatacenterConfig, name: NAME}
  clusterNetwork:
    cniConfig: {cilium: {}}
    pods: {cidrBlocks: [192.168.0.0/16]}
    services: {cidrBlocks: [10.96.0.0/12]}`

func named(name string) string { return strings.ReplaceAll(workload, "NAME", name) }

func TestWorkloadClusterLifecycle(t *testing.T) {
	spans := traced(t)
	w := newWorld(t, managertest.Checked)
	t.Chdir(t.TempDir())
	w.drover("create", "cluster", "-f", w.spec(named("dev")))
	w.ready("dev", "1/1", "1/1")
	if v := w.cluster("dev").Status.Version; v != "v1.35.4" {
		t.Errorf("version is %q", v)
	}
	w.checkKubeconfigAccess("dev")
	w.checkPackageAccess("dev")
	w.checkDriftIsCorrected("dev")

	w.change("dev", func(c *anywherev1.Cluster) { c.Spec.WorkerNodeGroupConfigurations[0].Count = ptr.To(3) })
	w.ready("dev", "1/1", "3/3")
	w.change("dev", func(c *anywherev1.Cluster) {
		c.Spec.WorkerNodeGroupConfigurations[0].Count = ptr.To(1)
		c.Spec.WorkerNodeGroupConfigurations = append(c.Spec.WorkerNodeGroupConfigurations, anywherev1.WorkerNodeGroupConfiguration{
			Name: "extra", Count: ptr.To(1), Labels: map[string]string{"tier": "extra"},
		})
	})
	w.ready("dev", "1/1", "2/2")

	w.drover("upgrade", "cluster", "-f", w.spec(named("dev"), `"1.35"`, `"1.36"`, "{name: md-0, count: 1}", "{name: md-0, count: 1}\n  - {name: extra, count: 1, labels: {tier: extra}}"))
	w.ready("dev", "1/1", "2/2")
	w.hasVersion("dev", "v1.36.3")
	w.change("dev", func(c *anywherev1.Cluster) {
		c.Spec.WorkerNodeGroupConfigurations = c.Spec.WorkerNodeGroupConfigurations[:1]
	})
	w.ready("dev", "1/1", "1/1")
	w.quiet()

	w.drover("delete", "cluster", "dev", "-n", w.ns, "--yes")
	w.awaitDeletion("dev")
	w.checkOneTrace(spans, "drover create cluster", "cluster create control-plane-initialized", "cluster create control-plane", "cluster create network", "cluster create workers", "cluster create total")
	w.checkOneTrace(spans, "drover upgrade cluster", "cluster upgrade control-plane", "cluster upgrade total")
	w.checkOneTrace(spans, "drover delete cluster", "cluster delete total")
	w.checkAuditRecords("dev", droverv1.Created, droverv1.Scaled, droverv1.Scaled, droverv1.Upgraded, droverv1.Scaled, droverv1.Deleted)
}

// checkAuditRecords checks that all actions of the user on a cluster are recorded, even after its
// deletion.
func (w *world) checkAuditRecords(name string, want ...droverv1.AuditAction) {
	w.Helper()
	all := &droverv1.AuditRecordList{}
	w.must(w.List(w.Context(), all, client.MatchingLabels{droverv1.ClusterLabel: name, droverv1.NamespaceLabel: w.ns}))
	slices.SortFunc(all.Items, func(a, b droverv1.AuditRecord) int { return a.Spec.Time.Compare(b.Spec.Time.Time) })
	var got []droverv1.AuditAction
	for _, r := range all.Items {
		got = append(got, r.Spec.Action)
		if r.Spec.User != userName {
			w.Errorf("%s was done by %q", r.Spec.Action, r.Spec.User)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		w.Error(d)
	}
}

// checkKubeconfigAccess checks that the user can read the working kubeconfig of a cluster, and no
// other Secret.
func (w *world) checkKubeconfigAccess(name string) {
	w.Helper()
	if got := w.cluster(name).Annotations[cluster.CreatedByAnnotation]; got != userName {
		w.Fatalf("the cluster is %q's", got)
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: w.ns, Name: name + "-kubeconfig"}
	w.until("the kubeconfig can be read", func() error { return w.user.Get(w.Context(), key, secret) })
	cfg, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["value"])
	w.must(err)
	workload, err := client.New(cfg, client.Options{})
	w.must(err)
	nodes := &corev1.NodeList{}
	w.must(workload.List(w.Context(), nodes))
	if len(nodes.Items) != 2 {
		w.Errorf("%d nodes", len(nodes.Items))
	}
	for _, key := range []client.ObjectKey{
		{Namespace: anywherev1.SystemNamespace, Name: name + "-kubeconfig"}, {Namespace: anywherev1.SystemNamespace, Name: anywherev1.LocalCredentials}, {Namespace: w.ns, Name: "other"},
	} {
		if err := w.user.Get(w.Context(), key, &corev1.Secret{}); !apierrors.IsForbidden(err) {
			w.Errorf("the user is not kept from Secret %s: %v", key, err)
		}
	}
	if err := w.user.List(w.Context(), &corev1.SecretList{}, client.InNamespace(w.ns)); !apierrors.IsForbidden(err) {
		w.Errorf("the user is not kept from listing Secrets: %v", err)
	}
}

// checkPackageAccess checks that the user may install packages on this cluster only.
func (w *world) checkPackageAccess(name string) {
	w.Helper()
	p := &packagesv1.Package{Spec: packagesv1.PackageSpec{PackageName: "hello"}}
	p.Namespace, p.Name = packagesv1.NamespacePrefix+name, "hello"
	w.until("packages can be installed", func() error { return w.user.Create(w.Context(), p.DeepCopy(), client.DryRunAll) })
	w.must(w.user.Get(w.Context(), client.ObjectKey{Namespace: packagesv1.Namespace, Name: name}, &packagesv1.PackageBundleController{}))
	p.Namespace, p.Name = packagesv1.Namespace, "other-hello"
	if err := w.user.Create(w.Context(), p, client.DryRunAll); !apierrors.IsForbidden(err) {
		w.Errorf("the user is not kept from packages of others: %v", err)
	}
}

// checkDriftIsCorrected checks that manual changes and deletions are reverted.
func (w *world) checkDriftIsCorrected(name string) {
	w.Helper()
	key := client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: name + "-md-0-worker-unhealthy"}
	check := &clusterv1.MachineHealthCheck{}
	w.must(w.Get(w.Context(), key, check))
	most := check.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo
	before := check.DeepCopy()
	check.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo = ptr.To(intstr.FromInt(7))
	w.must(w.Patch(w.Context(), check, client.MergeFrom(before)))
	w.until("a change is taken back", func() error {
		w.must(w.Get(w.Context(), key, check))
		if got := check.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo; got.String() != most.String() {
			return fmt.Errorf("it is %s", got)
		}
		return nil
	})
	w.must(w.Delete(w.Context(), check))
	w.until("what was deleted is made again", func() error { return w.Get(w.Context(), key, &clusterv1.MachineHealthCheck{}) })
	w.checkAccessIsRestored(name)
}

// checkAccessIsRestored checks that the user's access is restored after any change.
func (w *world) checkAccessIsRestored(name string) {
	w.Helper()
	key := client.ObjectKey{Namespace: w.ns, Name: name + "-kubeconfig"}
	role, binding := &rbacv1.Role{}, &rbacv1.RoleBinding{}
	w.must(w.Get(w.Context(), key, role))
	rules := role.Rules
	w.must(w.Patch(w.Context(), role, client.RawPatch(types.MergePatchType, []byte(`{"rules":[]}`))))
	w.until("the Role is as it was", func() error {
		w.must(w.Get(w.Context(), key, role))
		if diff := cmp.Diff(rules, role.Rules); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	w.must(w.Get(w.Context(), key, binding))
	w.must(w.Delete(w.Context(), binding))
	w.until("the RoleBinding is made again", func() error { return w.Get(w.Context(), key, binding) })
}

// hasVersion checks that all machines run a version, and that workers were never newer than their
// control plane.
func (w *world) hasVersion(name, version string) {
	w.Helper()
	machines := &clusterv1.MachineList{}
	w.must(w.List(w.Context(), machines, client.InNamespace(anywherev1.SystemNamespace), client.MatchingLabels{clusterv1.ClusterNameLabel: name}))
	for _, m := range machines.Items {
		if m.Spec.Version != version {
			w.Errorf("machine %q has %s, want %s", m.Name, m.Spec.Version, version)
		}
	}
}

// awaitDeletion waits until a Cluster is deleted, and searches for leftovers.
func (w *world) awaitDeletion(name string) {
	w.Helper()
	w.until(name+" is gone", func() error {
		c := &anywherev1.Cluster{}
		err := w.Get(w.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, c)
		if apierrors.IsNotFound(err) {
			return nil
		}
		w.must(err)
		return fmt.Errorf("the cluster still exists: %v", c.Status.Conditions)
	})
	if devices, addresses := w.metal.Left(w); devices != 0 || addresses != 0 {
		w.Errorf("got %d devices and %d addresses, want none", devices, addresses)
	}
	for _, kind := range ownKinds {
		for _, o := range w.list(kind, anywherev1.ClusterNameLabel, name) {
			w.Errorf("%s %s/%s still exists, want it deleted", kind.Kind, o.GetNamespace(), o.GetName())
		}
	}
	for _, o := range w.list(anywherev1.GroupVersion.WithKind("DockerDatacenterConfig"), "", "") {
		if o.GetNamespace() == w.ns {
			w.Errorf("DockerDatacenterConfig %s still exists, want it deleted", o.GetName())
		}
	}
}

// ownKinds are the kinds of all objects that the controller creates.
var ownKinds = []schema.GroupVersionKind{
	{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Cluster"},
	{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "MachineDeployment"},
	{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "MachineHealthCheck"},
	{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Machine"},
	{Group: "controlplane.cluster.x-k8s.io", Version: "v1beta2", Kind: "KubeadmControlPlane"},
	{Group: "etcdcluster.cluster.x-k8s.io", Version: "v1beta1", Kind: "EtcdadmCluster"},
	{Group: "bootstrap.cluster.x-k8s.io", Version: "v1beta2", Kind: "KubeadmConfigTemplate"},
	{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1", Kind: "PacketCluster"},
	{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1", Kind: "PacketMachineTemplate"},
	{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1", Kind: "PacketMachine"},
	{Group: "addons.cluster.x-k8s.io", Version: "v1alpha1", Kind: "HelmChartProxy"},
	{Group: "addons.cluster.x-k8s.io", Version: "v1alpha1", Kind: "HelmReleaseProxy"},
	{Group: "packages.eks.amazonaws.com", Version: "v1alpha1", Kind: "PackageBundleController"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	{Version: "v1", Kind: "Secret"},
}

func (w *world) list(kind schema.GroupVersionKind, label, value string) []unstructured.Unstructured {
	w.Helper()
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	var options []client.ListOption
	if label != "" {
		options = append(options, client.MatchingLabels{label: value})
	}
	w.must(w.List(w.Context(), all, options...))
	return all.Items
}
