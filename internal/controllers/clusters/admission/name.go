package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/clusters/cluster"
	"github.com/drover-dev/drover/internal/model/owner"
	"github.com/drover-dev/drover/internal/model/target"
)

// checkName rejects the name of a new Cluster that others use. Machines and credentials of all
// clusters share one namespace, and names select the cluster of a package. Administrators are only
// warned of names that capture packages, because they may have prepared these objects.
//
// No message says where or by whom a name is used. The controllers check again by UID, for Clusters
// that are created at the same time.
func (r *clusterRules) checkName(ctx context.Context, c *anywherev1.Cluster) (admission.Warnings, error) {
	taken, err := r.isTaken(ctx, c)
	if err != nil {
		return nil, err
	}
	if taken {
		return nil, rejection("%s", alreadyExists(c.Name))
	}
	problem, err := r.captures(ctx, c)
	if err != nil || problem == "" {
		return nil, err
	}
	administrator, err := r.users.IsAdministrator(ctx, clusterResource())
	if err != nil {
		return nil, err
	}
	if !administrator {
		return nil, rejection("%s", problem)
	}
	return admission.Warnings{"for administrators only: " + problem}, nil
}

// captures returns why a name captures what belongs to others, or the empty string.
func (r *clusterRules) captures(ctx context.Context, c *anywherev1.Cluster) (string, error) {
	names := usedNames{}
	for _, collect := range []func(context.Context, usedNames) error{r.clusterNames, r.infrastructureNames, r.controllerNames} {
		if err := collect(ctx, names); err != nil {
			return "", err
		}
	}
	if r.ManagementCluster != "" {
		names.add(r.ManagementCluster, "")
	}
	if problem := names.capture(c); problem != "" {
		return problem, nil
	}
	if used, err := r.usesNamespace(ctx, c); err != nil || used {
		return alreadyExists(c.Name), err
	}
	if expected, err := r.isExpected(ctx, c); err != nil || expected {
		return fmt.Sprintf("a package for cluster name %s already exists; choose another name", c.Name), err
	}
	return "", nil
}

func alreadyExists(name string) string {
	return fmt.Sprintf("cluster name %s already exists; choose another name", name)
}

// isTaken reports whether another Cluster has the name, or the objects of one that is not a former
// Cluster of the same name and namespace.
func (r *clusterRules) isTaken(ctx context.Context, c *anywherev1.Cluster) (bool, error) {
	other, err := cluster.Named(ctx, r.reader, c.Name)
	if err != nil || other != nil && other.Namespace != c.Namespace {
		return true, err
	}
	made := &clusterv1.Cluster{}
	err = r.live.Get(ctx, client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: c.Name}, made)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return !owner.Labeled(c, made), nil
}

// usesNamespace reports whether the namespace of packages exists and is not that of a former
// Cluster of the same name and namespace, which may still be terminating.
func (r *clusterRules) usesNamespace(ctx context.Context, c *anywherev1.Cluster) (bool, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := r.live.Get(ctx, client.ObjectKey{Name: packagesv1.NamespacePrefix + c.Name}, namespace)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return !owner.Labeled(c, namespace), nil
}

// isExpected reports whether a Package in the shared namespace, which administrators write, is for
// a cluster of the name: its cluster was deleted, or does not exist yet.
func (r *clusterRules) isExpected(ctx context.Context, c *anywherev1.Cluster) (bool, error) {
	list := &packagesv1.PackageList{}
	if err := r.reader.List(ctx, list, client.InNamespace(packagesv1.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing Packages: %w", err)
	}
	return slices.ContainsFunc(list.Items, func(p packagesv1.Package) bool { return target.Fits(&p, c.Name) }), nil
}

// usedNames maps the names of clusters to the namespaces of the users that they belong to. The
// namespace is empty for those of administrators.
type usedNames map[string][]string

func (n usedNames) add(name, tenant string) { n[name] = append(n[name], tenant) }

// byOthers reports whether a name is used outside a namespace.
func (n usedNames) byOthers(name, tenant string) bool {
	for _, by := range n[name] {
		if by != tenant {
			return true
		}
	}
	return false
}

// capture returns why a name captures what belongs to others: it is used itself, or it extends a
// used name by a dash. Package "prod-db-x" of cluster "prod" would be one of cluster "prod-db".
func (n usedNames) capture(c *anywherev1.Cluster) string {
	if n.byOthers(c.Name, c.Namespace) {
		return alreadyExists(c.Name)
	}
	for i := range c.Name {
		if c.Name[i] == '-' && n.byOthers(c.Name[:i], c.Namespace) {
			return fmt.Sprintf("cluster name %s starts with the name of another cluster and a dash, so that packages of that cluster could be installed on this one; choose a name that doesn't start with %q",
				c.Name, strings.SplitN(c.Name, "-", 2)[0]+"-")
		}
	}
	return ""
}

func (r *clusterRules) clusterNames(ctx context.Context, into usedNames) error {
	list := &anywherev1.ClusterList{}
	if err := r.reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing Clusters: %w", err)
	}
	for i := range list.Items {
		into.add(list.Items[i].Name, list.Items[i].Namespace)
	}
	return nil
}

// infrastructureNames adds the Clusters of Cluster API. Those that Drover created belong to the
// namespace of their Cluster, others to administrators.
func (r *clusterRules) infrastructureNames(ctx context.Context, into usedNames) error {
	list := &clusterv1.ClusterList{}
	if err := r.reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing Clusters of Cluster API: %w", err)
	}
	for i := range list.Items {
		into.add(list.Items[i].Name, list.Items[i].Labels[anywherev1.ClusterNamespaceLabel])
	}
	return nil
}

func (r *clusterRules) controllerNames(ctx context.Context, into usedNames) error {
	list := &packagesv1.PackageBundleControllerList{}
	if err := r.reader.List(ctx, list, client.InNamespace(packagesv1.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing PackageBundleControllers: %w", err)
	}
	for i := range list.Items {
		into.add(list.Items[i].Name, list.Items[i].Labels[anywherev1.ClusterNamespaceLabel])
	}
	return nil
}
