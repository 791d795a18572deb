package bootstrap

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/model/owner"
	"github.com/drover-dev/drover/internal/model/target"
)

// disposition is what happens to an object of the source.
type disposition int

const (
	ignored disposition = iota // it does not belong to the cluster
	linked                     // it moves if its owner moves
	moved                      // it moves, with all that it owns
	copied                     // it is copied, because others need it
)

// selection decides what belongs to one cluster. The upstream mover moves whole namespaces; it sees
// only this.
type selection struct {
	cluster types.NamespacedName
	// alone means that no other cluster is in the namespace.
	alone bool
	// controllers are the tenants of all PackageBundleControllers by name.
	controllers map[string]string
	// charts has the clusters on which each HelmChartProxy has releases.
	charts map[types.UID][]string
	// mine and others are the configs that this cluster and other clusters reference.
	mine, others map[string]bool
	// credentials are the Secrets that the cluster's infrastructure and its EtcdSnapshotSchedules
	// reference.
	credentials map[string]bool
}

// readers are the two ends of a move. An earlier run may have moved the objects that decide what
// belongs to a cluster.
type readers struct{ source, destination client.Reader }

// gather reads what the decisions depend on.
func gather(ctx context.Context, c readers, key types.NamespacedName) (*selection, error) {
	s := &selection{
		cluster: key, alone: true, controllers: map[string]string{}, charts: map[types.UID][]string{},
		mine: map[string]bool{}, others: map[string]bool{}, credentials: map[string]bool{},
	}
	for _, read := range []func(context.Context, readers) error{s.gatherClusters, s.gatherPackages, s.gatherCharts, s.gatherConfigs, s.gatherCredentials, s.gatherSchedules} {
		if err := read(ctx, c); err != nil {
			return nil, fmt.Errorf("reading what belongs to cluster %q: %w", key.Name, err)
		}
	}
	return s, nil
}

func (s *selection) gatherClusters(ctx context.Context, c readers) error {
	list := &clusterv1.ClusterList{}
	if err := c.source.List(ctx, list, client.InNamespace(s.cluster.Namespace)); err != nil {
		return err
	}
	for _, other := range list.Items {
		s.alone = s.alone && other.Name == s.cluster.Name
	}
	return nil
}

func (s *selection) gatherPackages(ctx context.Context, c readers) error {
	for _, side := range []client.Reader{c.source, c.destination} {
		list := &packagesv1.PackageBundleControllerList{}
		if err := side.List(ctx, list, client.InNamespace(packagesv1.Namespace)); err != nil {
			return err
		}
		for _, p := range list.Items {
			if side == c.source || p.Name == s.cluster.Name {
				s.controllers[p.Name] = owner.Users(&p)
			}
		}
	}
	return nil
}

func (s *selection) gatherCharts(ctx context.Context, c readers) error {
	list := &addonsv1.HelmReleaseProxyList{}
	if err := c.source.List(ctx, list, client.InNamespace(s.cluster.Namespace)); err != nil {
		return err
	}
	for _, r := range list.Items {
		for _, owner := range r.OwnerReferences {
			s.charts[owner.UID] = append(s.charts[owner.UID], r.Spec.ClusterRef.Name)
		}
	}
	return nil
}

// gatherCredentials reads the credentialsRef of a PacketCluster, or of any other kind that has one.
func (s *selection) gatherCredentials(ctx context.Context, c readers) error {
	cluster := &clusterv1.Cluster{}
	if err := c.source.Get(ctx, s.cluster, cluster); err != nil {
		return client.IgnoreNotFound(err) // Credentials were copied before it moved.
	}
	ref := cluster.Spec.InfrastructureRef
	if !ref.IsDefined() {
		return nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(ref.APIGroup + "/v1beta1")
	list.SetKind(ref.Kind + "List")
	if err := c.source.List(ctx, list, client.InNamespace(s.cluster.Namespace)); err != nil {
		return client.IgnoreNotFound(err)
	}
	for _, u := range list.Items {
		if name, _, _ := unstructured.NestedString(u.Object, "spec", "credentialsRef", "name"); u.GetName() == ref.Name && name != "" {
			s.credentials[name] = true
		}
	}
	return nil
}

// gatherSchedules reads the Secrets with which snapshots of the cluster are saved.
func (s *selection) gatherSchedules(ctx context.Context, c readers) error {
	list := &droverv1.EtcdSnapshotScheduleList{}
	err := c.source.List(ctx, list, client.InNamespace(s.cluster.Namespace))
	if meta.IsNoMatchError(err) {
		return nil // An older Drover has none.
	}
	for i := range list.Items {
		if spec := list.Items[i].Spec; spec.ClusterName == s.cluster.Name && spec.SecretRef != nil {
			s.credentials[spec.SecretRef.Name] = true
		}
	}
	return err
}

// disposition decides about one object.
func (s *selection) disposition(u *unstructured.Unstructured) disposition {
	kind := u.GroupVersionKind().GroupKind()
	switch {
	case kind.Group == packagesv1.GroupVersion.Group:
		return s.ofPackages(u)
	case kind.Group == anywherev1.GroupVersion.Group:
		return s.ofConfigs(u)
	case kind.Group == addonsv1.GroupVersion.Group && kind.Kind == "HelmReleaseProxy":
		return s.ofRelease(u)
	case kind.Group == "" && kind.Kind == "Secret":
		return s.ofSecret(u)
	case u.GetNamespace() != s.cluster.Namespace:
		return ignored
	case kind.Group == clusterv1.GroupVersion.Group && kind.Kind == "Cluster":
		return either(u.GetName() == s.cluster.Name, moved)
	case kind.Group == droverv1.GroupVersion.Group && kind.Kind == "EtcdSnapshotSchedule":
		name, _, _ := unstructured.NestedString(u.Object, "spec", "clusterName")
		return either(name == s.cluster.Name, moved)
	case kind.Kind == "HelmChartProxy" || kind.Kind == "ClusterResourceSet":
		return s.ofAddon(u)
	}
	return s.ofMember(u)
}

func either(belongs bool, f disposition) disposition { //nolint:revive // A fact, not a mode.
	if belongs {
		return f
	}
	return ignored
}

// ofMember decides about parts of a cluster. The owner decides if the object names no cluster.
func (s *selection) ofMember(u *unstructured.Unstructured) disposition {
	if name, ok := clusterOf(u); ok {
		return either(name == s.cluster.Name, linked)
	}
	return linked
}

// clusterOf returns the cluster that an object names.
func clusterOf(u *unstructured.Unstructured) (string, bool) {
	for _, label := range []string{anywherev1.ClusterNameLabel, clusterv1.ClusterNameLabel} {
		if name := u.GetLabels()[label]; name != "" {
			return name, true
		}
	}
	for _, owner := range u.GetOwnerReferences() {
		if owner.Kind == "Cluster" && strings.HasPrefix(owner.APIVersion, clusterv1.GroupVersion.Group+"/") {
			return owner.Name, true
		}
	}
	return "", false
}

// ofAddon decides about what may serve several clusters.
func (s *selection) ofAddon(u *unstructured.Unstructured) disposition {
	name, own := clusterOf(u)
	on := s.charts[u.GetUID()]
	switch {
	case own:
		return either(name == s.cluster.Name, moved)
	case s.alone:
		return moved
	case u.GetKind() == "HelmChartProxy" && !slices.Contains(on, s.cluster.Name):
		return ignored
	}
	return copied
}

func (s *selection) ofRelease(u *unstructured.Unstructured) disposition {
	name, _, _ := unstructured.NestedString(u.Object, "spec", "clusterRef", "name")
	namespace, _, _ := unstructured.NestedString(u.Object, "spec", "clusterRef", "namespace")
	return either(name == s.cluster.Name && (namespace == s.cluster.Namespace || namespace == "" && u.GetNamespace() == s.cluster.Namespace), linked)
}

func (s *selection) ofPackages(u *unstructured.Unstructured) disposition {
	switch u.GetKind() {
	case "PackageBundleController":
		return either(u.GetName() == s.cluster.Name && u.GetNamespace() == packagesv1.Namespace, moved)
	case "PackageBundle":
		return either(s.hasPackages(), copied)
	}
	return either(packageCluster(u, s.controllers) == s.cluster.Name, moved)
}

// hasPackages reports whether the cluster has a PackageBundleController.
func (s *selection) hasPackages() bool {
	_, has := s.controllers[s.cluster.Name]
	return has
}

// packageCluster returns the cluster of a Package, empty if it has none. The controllers are the
// tenants of PackageBundleControllers by name. A known target doesn't change.
func packageCluster(u *unstructured.Unstructured, controllers map[string]string) string {
	if known, _, _ := unstructured.NestedString(u.Object, "status", "target", "cluster"); known != "" {
		return known
	}
	t, err := target.Of(client.ObjectKeyFromObject(u), func(cluster string) (string, bool) {
		tenant, exists := controllers[cluster]
		return tenant, exists
	})
	if err != nil {
		return ""
	}
	return t.Cluster
}

// ofSecret selects Secrets of the cluster, of its infrastructure and packages, and those labeled to
// be moved.
func (s *selection) ofSecret(u *unstructured.Unstructured) disposition {
	_, labeled := u.GetLabels()[clusterctlv1.ClusterctlMoveLabel]
	kind, _, _ := unstructured.NestedString(u.Object, "type")
	switch namespace := u.GetNamespace(); {
	case strings.HasPrefix(kind, "kubernetes.io/service-account") || strings.HasPrefix(kind, "helm.sh/"):
		return ignored
	case namespace == packagesv1.NamespacePrefix+s.cluster.Name:
		return moved
	case namespace == packagesv1.Namespace:
		return either(s.hasPackages(), copied)
	case namespace != s.cluster.Namespace:
		return ignored
	case labeled && u.GetLabels()[anywherev1.ClusterNameLabel] != "":
		// A Secret of one cluster, such as its encryption keys: nothing stays behind.
		return either(u.GetLabels()[anywherev1.ClusterNameLabel] == s.cluster.Name, moved)
	case labeled && u.GetLabels()[clusterv1.ClusterNameLabel] != "":
		// A Secret of one machine, such as the userdata of a member of external etcd.
		return s.ofMember(u)
	case s.credentials[u.GetName()] || labeled || u.GetName() == anywherev1.RegistryCredentials:
		return copied
	}
	return s.ofMember(u)
}
