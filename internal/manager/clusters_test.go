package manager_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// oldCluster is a manifest of the deprecated version with an unknown infrastructure kind.
const oldCluster = `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata:
  name: old
spec:
  clusterNetwork:
    pods: {cidrBlocks: [10.1.0.0/16]}
  controlPlaneRef:
    apiVersion: controlplane.cluster.x-k8s.io/v1beta1
    kind: KubeadmControlPlane
    name: old-control-plane
`

func TestOldClusterVersionIsConverted(t *testing.T) {
	server, _ := ready(t)
	c := newClient(t, server.Config)
	key := client.ObjectKey{Namespace: server.Namespace(t), Name: "old"}
	create(t, c, key.Namespace, oldCluster)

	current := &clusterv1.Cluster{}
	if err := c.Get(t.Context(), key, current); err != nil {
		t.Fatal(err)
	}
	want := clusterv1.ContractVersionedObjectReference{
		APIGroup: "controlplane.cluster.x-k8s.io", Kind: "KubeadmControlPlane", Name: "old-control-plane",
	}
	if diff := cmp.Diff(want, current.Spec.ControlPlaneRef); diff != "" {
		t.Errorf("reference in v1beta2 (-want +got):\n%s", diff)
	}

	old := &clusterv1beta1.Cluster{}
	if err := c.Get(t.Context(), key, old); err != nil {
		t.Fatal(err)
	}
	// v1beta2 stores no version, so it was found in the labels of the CRD.
	if got := old.Spec.ControlPlaneRef.APIVersion; got != "controlplane.cluster.x-k8s.io/v1beta2" {
		t.Errorf("reference in v1beta1 has version %q", got)
	}
	if diff := cmp.Diff([]string{"10.1.0.0/16"}, old.Spec.ClusterNetwork.Pods.CIDRBlocks); diff != "" {
		t.Errorf("network in v1beta1 (-want +got):\n%s", diff)
	}
}

func TestRejectionsMatchUpstream(t *testing.T) {
	server, _ := ready(t)
	c := newClient(t, server.Config)
	for _, tc := range []struct{ name, manifest, want string }{
		{
			name: "a cluster whose pod network is no network",
			manifest: `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: invalid}
spec:
  clusterNetwork: {pods: {cidrBlocks: [10.1.0.0]}}
  controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: KubeadmControlPlane, name: x}`,
			want: `admission webhook "validation.cluster.cluster.x-k8s.io" denied the request: Cluster.cluster.x-k8s.io "invalid" is invalid: spec.clusterNetwork.pods.cidrBlocks`,
		},
		{
			name: "a cluster of a class, with a version that is none",
			manifest: `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: invalid}
spec:
  topology: {classRef: {name: missing}, version: latest}`,
			want: "version must be a valid semantic version",
		},
		{
			name: "a control plane with an even number of members",
			manifest: `
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: KubeadmControlPlane
metadata: {name: invalid}
spec:
  replicas: 2
  version: v1.36.3
  kubeadmConfigSpec: {format: cloud-config}
  machineTemplate: {spec: {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: T, name: t}}}`,
			want: "cannot be an even number when etcd is stacked",
		},
		{
			name: "a class that refers to something that is no template",
			manifest: `
apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {name: invalid}
spec:
  infrastructure: {templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: NoSuffix, name: t}}
  controlPlane: {templateRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta2, kind: KubeadmControlPlaneTemplate, name: t}}`,
			want: `template kind must be of form "<name>Template"`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			obj := decode(t, tc.manifest)
			obj.SetNamespace(server.Namespace(t))
			err := c.Create(t.Context(), obj)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want a refusal with %q", err, tc.want)
			}
		})
	}
}

func TestClusterClassIsReconciled(t *testing.T) {
	server, _ := ready(t)
	c := newClient(t, server.Config)
	ns := server.Namespace(t)
	create(t, c, ns, `
apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {name: small}
spec:
  infrastructure: {templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: ThingClusterTemplate, name: t}}
  controlPlane: {templateRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta2, kind: KubeadmControlPlaneTemplate, name: t}}`)
	create(t, c, ns, `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: classy}
spec:
  topology: {classRef: {name: small}, version: v1.36.3}`)
	eventually(t, func() error {
		return hasCondition(t, c, client.ObjectKey{Namespace: ns, Name: "classy"}, clusterv1.ClusterTopologyReconciledCondition)
	})
}

func TestClusterWithoutInfrastructureHasConditions(t *testing.T) {
	server, _ := ready(t)
	c := newClient(t, server.Config)
	ns := server.Namespace(t)
	create(t, c, ns, plainCluster)
	eventually(t, func() error {
		return hasCondition(t, c, client.ObjectKey{Namespace: ns, Name: "plain"}, clusterv1.ClusterAvailableCondition)
	})
}

const plainCluster = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: plain}
spec:
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: ThingCluster, name: plain}`

// hasCondition reports whether the cluster's reconciler has set any condition.
func hasCondition(t *testing.T, c client.Client, key client.ObjectKey, condition string) error {
	t.Helper()
	cluster := &clusterv1.Cluster{}
	if err := c.Get(t.Context(), key, cluster); err != nil {
		return err
	}
	if meta.FindStatusCondition(cluster.Status.Conditions, condition) == nil {
		return fmt.Errorf("no condition %s among %s", condition, conditionTypes(cluster.Status.Conditions))
	}
	return nil
}

func conditionTypes(conditions []metav1.Condition) []string {
	types := []string{}
	for _, c := range conditions {
		types = append(types, c.Type)
	}
	return types
}

// create creates the object of a manifest, which usually requires a webhook.
func create(t *testing.T, c client.Client, namespace, manifest string) {
	t.Helper()
	obj := decode(t, manifest)
	obj.SetNamespace(namespace)
	if err := c.Create(t.Context(), obj); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("creating %s %q: %v", obj.GetKind(), obj.GetName(), err)
	}
}

func decode(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &obj.Object); err != nil {
		t.Fatal(err)
	}
	return obj
}
