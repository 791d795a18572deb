package target

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/model/owner"
)

// Cluster selects the Cluster of a PackageBundleController: the one in the namespace that it names,
// else the one in KubeconfigNamespace, else the only one. A cluster that users created only gets
// what was made for it, so that nobody receives packages by choosing a name.
func Cluster(c *packagesv1.PackageBundleController, found []clusterv1.Cluster) (*clusterv1.Cluster, error) {
	var named, open []*clusterv1.Cluster
	for i := range found {
		if found[i].Name != c.Name {
			continue
		}
		named = append(named, &found[i])
		if Accepts(c, &found[i]) {
			open = append(open, &found[i])
		}
	}
	if c.Spec.ClusterNamespace != "" {
		return chosen(c, named)
	}
	if usual := in(packagesv1.KubeconfigNamespace, open); usual != nil {
		return usual, nil
	}
	switch {
	case len(open) == 1:
		return open[0], nil
	case len(open) > 1:
		return nil, &AmbiguousError{fmt.Sprintf("Cluster %q exists in several namespaces: set clusterNamespace in PackageBundleController %q", c.Name, c.Name)}
	case len(named) > 0:
		return nil, &DeniedError{fmt.Sprintf("PackageBundleController %q was not made for Cluster %q: an administrator must set clusterNamespace in it", c.Name, c.Name)}
	default:
		return nil, &UnknownError{fmt.Sprintf("Cluster %q not found", c.Name)}
	}
}

// Accepts reports whether a Cluster gets the packages of a PackageBundleController: both belong to
// the same Cluster or to administrators, or an administrator named the namespace.
func Accepts(c *packagesv1.PackageBundleController, cluster *clusterv1.Cluster) bool {
	byAdministrator := c.Labels[anywherev1.ClusterNamespaceLabel] == ""
	return owner.MayUse(cluster, c) || byAdministrator && c.Spec.ClusterNamespace == cluster.Namespace
}

// chosen returns the Cluster in the namespace that a PackageBundleController names.
func chosen(c *packagesv1.PackageBundleController, named []*clusterv1.Cluster) (*clusterv1.Cluster, error) {
	cluster := in(c.Spec.ClusterNamespace, named)
	switch {
	case cluster == nil:
		return nil, &UnknownError{fmt.Sprintf("Cluster %q not found in namespace %q, which PackageBundleController %q names", c.Name, c.Spec.ClusterNamespace, c.Name)}
	case !Accepts(c, cluster):
		return nil, &DeniedError{fmt.Sprintf("PackageBundleController %q was made for another Cluster of the name: an administrator must delete it", c.Name)}
	}
	return cluster, nil
}

// CheckNamespace returns an error if packages in a namespace are not for a Cluster of the name:
// whoever may write there need not have a right to the Cluster. The shared namespace belongs to
// administrators.
func CheckNamespace(cluster *clusterv1.Cluster, namespace metav1.Object) error {
	if namespace.GetName() == packagesv1.Namespace || owner.MayUse(cluster, namespace) {
		return nil
	}
	return &DeniedError{fmt.Sprintf("namespace %q was not created for Cluster %q: an administrator must delete it, or annotate it with %s=%s",
		namespace.GetName(), cluster.Name, anywherev1.ClusterUIDAnnotation, owner.UID(cluster))}
}

// Installed reports whether the release of a recorded target is on a Cluster, and not on a deleted
// one of its name. Earlier versions did not record the UID: a release that is not older than the
// Cluster was created for it.
func Installed(t *packagesv1.PackageTarget, release metav1.Object, cluster *clusterv1.Cluster) bool {
	if t.ClusterUID != "" {
		return owner.Identifies(cluster, t.ClusterUID)
	}
	return !owner.Older(release, cluster)
}

func in(namespace string, clusters []*clusterv1.Cluster) *clusterv1.Cluster {
	for _, c := range clusters {
		if c.Namespace == namespace {
			return c
		}
	}
	return nil
}

// Tenant returns the namespace of the owner of a Cluster. Clusters that Drover creates from specs
// are in a namespace where nobody else creates any, and a label names the namespace of the spec.
// Other Clusters belong to their own namespace, whatever their labels say.
func Tenant(cluster *clusterv1.Cluster) string {
	if tenant := cluster.Labels[anywherev1.ClusterNamespaceLabel]; tenant != "" && cluster.Namespace == anywherev1.SystemNamespace {
		return tenant
	}
	return cluster.Namespace
}
