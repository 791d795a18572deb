package management

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/model/target"
)

// fate is what becomes of an object of the source.
type fate int

const (
	ignored fate = iota // it has nothing to do with the cluster
	linked              // it goes if it belongs to something that goes
	moved               // it goes, with all that belongs to it
	copied              // it goes, and stays as well: others need it
)

// selection knows what belongs to one cluster. Upstream's mover takes whole namespaces; it is shown no more than this.
type selection struct {
	cluster types.NamespacedName
	// alone says that no other cluster is in the namespace.
	alone bool
	// controllers are the names of all PackageBundleControllers.
	controllers map[string]bool
	// charts says, for each HelmChartProxy, on which clusters of its namespace it has releases.
	charts map[types.UID][]string
	// configs are what Clusters of our own group refer to: by this one, and by others.
	mine, others map[string]bool
	// credentials are Secrets that the cluster's infrastructure names.
	credentials map[string]bool
}

// sides are where objects go from and to. What says which others belong to a cluster may have left the one already, and is on the other then.
type sides struct{ source, destination client.Reader }

// choose looks at what there is.
func choose(ctx context.Context, c sides, key types.NamespacedName) (*selection, error) {
	s := &selection{
		cluster: key, alone: true, controllers: map[string]bool{}, charts: map[types.UID][]string{},
		mine: map[string]bool{}, others: map[string]bool{}, credentials: map[string]bool{},
	}
	for _, look := range []func(context.Context, sides) error{s.lookAtClusters, s.lookAtPackages, s.lookAtCharts, s.lookAtConfigs, s.lookAtCredentials} {
		if err := look(ctx, c); err != nil {
			return nil, fmt.Errorf("finding out what belongs to cluster %q: %w", key.Name, err)
		}
	}
	return s, nil
}

func (s *selection) lookAtClusters(ctx context.Context, c sides) error {
	list := &clusterv1.ClusterList{}
	if err := c.source.List(ctx, list, client.InNamespace(s.cluster.Namespace)); err != nil {
		return err
	}
	for _, other := range list.Items {
		s.alone = s.alone && other.Name == s.cluster.Name
	}
	return nil
}

func (s *selection) lookAtPackages(ctx context.Context, c sides) error {
	for _, side := range []client.Reader{c.source, c.destination} {
		list := &packagesv1.PackageBundleControllerList{}
		if err := side.List(ctx, list, client.InNamespace(packagesv1.Namespace)); err != nil {
			return err
		}
		for _, p := range list.Items {
			if side == c.source || p.Name == s.cluster.Name {
				s.controllers[p.Name] = true
			}
		}
	}
	return nil
}

func (s *selection) lookAtCharts(ctx context.Context, c sides) error {
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

// lookAtCredentials reads what a PacketCluster says, and any other kind that says it in the same way.
func (s *selection) lookAtCredentials(ctx context.Context, c sides) error {
	cluster := &clusterv1.Cluster{}
	if err := c.source.Get(ctx, s.cluster, cluster); err != nil {
		return client.IgnoreNotFound(err) // All that is copied was copied before it left.
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

// fate decides about one object.
func (s *selection) fate(u *unstructured.Unstructured) fate {
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
	case kind.Kind == "HelmChartProxy" || kind.Kind == "ClusterResourceSet":
		return s.ofAddon(u)
	}
	return s.ofMember(u)
}

func either(belongs bool, f fate) fate { //nolint:revive // a fact, not a switch
	if belongs {
		return f
	}
	return ignored
}

// ofMember is for whatever a cluster consists of. Who owns it decides if nothing on it says so.
func (s *selection) ofMember(u *unstructured.Unstructured) fate {
	if name, ok := said(u); ok {
		return either(name == s.cluster.Name, linked)
	}
	return linked
}

// said is the cluster that an object names.
func said(u *unstructured.Unstructured) (string, bool) {
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

// ofAddon is for what may serve several clusters.
func (s *selection) ofAddon(u *unstructured.Unstructured) fate {
	name, own := said(u)
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

func (s *selection) ofRelease(u *unstructured.Unstructured) fate {
	name, _, _ := unstructured.NestedString(u.Object, "spec", "clusterRef", "name")
	namespace, _, _ := unstructured.NestedString(u.Object, "spec", "clusterRef", "namespace")
	return either(name == s.cluster.Name && (namespace == s.cluster.Namespace || namespace == "" && u.GetNamespace() == s.cluster.Namespace), linked)
}

func (s *selection) ofPackages(u *unstructured.Unstructured) fate {
	switch u.GetKind() {
	case "PackageBundleController":
		return either(u.GetName() == s.cluster.Name && u.GetNamespace() == packagesv1.Namespace, moved)
	case "PackageBundle":
		return either(s.controllers[s.cluster.Name], copied)
	}
	t, err := target.Of(client.ObjectKeyFromObject(u), func(name string) bool { return s.controllers[name] })
	return either(err == nil && t.Cluster == s.cluster.Name, moved)
}

// ofSecret takes what belongs to the cluster, what its infrastructure and its packages are reached with, and what is labelled to be taken.
func (s *selection) ofSecret(u *unstructured.Unstructured) fate {
	_, labelled := u.GetLabels()[clusterctlv1.ClusterctlMoveLabel]
	kind, _, _ := unstructured.NestedString(u.Object, "type")
	switch namespace := u.GetNamespace(); {
	case strings.HasPrefix(kind, "kubernetes.io/service-account") || strings.HasPrefix(kind, "helm.sh/"):
		return ignored
	case namespace == packagesv1.NamespacePrefix+s.cluster.Name:
		return moved
	case namespace == packagesv1.Namespace:
		return either(s.controllers[s.cluster.Name], copied)
	case namespace != s.cluster.Namespace:
		return ignored
	case s.credentials[u.GetName()] || labelled || u.GetName() == anywherev1.RegistryCredentials:
		return copied
	}
	return s.ofMember(u)
}
