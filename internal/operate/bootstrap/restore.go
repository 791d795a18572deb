package bootstrap

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/model/backup/objects"
)

// Restore creates all objects of a cluster on a management plane from a backup, as Move would from
// the plane that is lost. They stay paused until Resume is called, so that no controller acts on
// them before the caller has compared them with the machines.
//
// It may be killed at any time and called again. A cluster that was restored and resumed is left
// alone.
func Restore(ctx context.Context, from objects.Set, to *rest.Config, name string) error {
	destination, err := newClient(to)
	if err != nil {
		return err
	}
	source := newArchived(from, destination)
	key, found, err := findCluster(ctx, source, name)
	if err != nil {
		return err
	}
	if !found {
		return &NotFoundError{Cluster: name}
	}
	arrived, marked, err := arrival(ctx, destination, key)
	if err != nil || arrived && !marked {
		return err
	}
	selected, err := prepare(ctx, source, destination, key)
	if err != nil {
		return fmt.Errorf("restoring cluster %q: %w", name, err)
	}
	if err := source.keepNewer(ctx, selected, destination); err != nil {
		return fmt.Errorf("restoring cluster %q: %w", name, err)
	}
	// The state of a cluster that was being created is determined again like any other.
	reader := &sourceClient{Client: source, selection: selected, dispositions: map[types.UID]disposition{}, halfway: true}
	if err := transfer(ctx, reader, destination); err != nil {
		return fmt.Errorf("restoring cluster %q: %w", name, err)
	}
	return markRestored(ctx, destination, key)
}

// markRestored records that all objects of a cluster are there, so that HoldOf tells it from one
// whose restore was interrupted.
func markRestored(ctx context.Context, c client.Client, key types.NamespacedName) error {
	cluster := &clusterv1.Cluster{}
	if err := c.Get(ctx, key, cluster); err != nil {
		return fmt.Errorf("restoring cluster %q: %w", key.Name, err)
	}
	return change(ctx, c, pausable{Object: cluster}, func() { annotate(cluster, RestoredAnnotation, key.Name) })
}

// arrival reports whether a Cluster exists, and whether it bears the mark of an unfinished restore.
func arrival(ctx context.Context, c client.Reader, key types.NamespacedName) (arrived, marked bool, err error) {
	cluster := &clusterv1.Cluster{}
	if err := c.Get(ctx, key, cluster); err != nil {
		return false, false, client.IgnoreNotFound(err)
	}
	return true, cluster.Annotations[PausedForMove] == key.Name, nil
}

// keepNewer makes the backup omit Secrets that clusters share and that the destination has already:
// the credentials for machines may have changed since.
func (a *archived) keepNewer(ctx context.Context, s *selection, destination client.Reader) error {
	for _, key := range slices.Clone(a.order) {
		u := a.objects[key]
		if u.GetKind() != "Secret" || s.disposition(u) != copied {
			continue
		}
		exists, err := has(ctx, destination, u)
		if err != nil {
			return err
		}
		if exists {
			a.remove(key)
		}
	}
	return nil
}

func has(ctx context.Context, c client.Reader, u *unstructured.Unstructured) (bool, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(u.GroupVersionKind())
	if err := c.Get(ctx, client.ObjectKeyFromObject(u), live); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return true, nil
}

// RestoreNamespaces creates the namespaces of a backup, with what grants and limits access to
// clusters and machines there, before any cluster is restored. What exists already is left alone.
func RestoreNamespaces(ctx context.Context, from objects.Set, to *rest.Config) error {
	c, err := newClient(to)
	if err != nil {
		return err
	}
	for _, kind := range []schema.GroupKind{{Kind: "Namespace"}, {Kind: "ResourceQuota"}, {Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}} {
		for _, u := range from.Of(kind) {
			if err := createFresh(ctx, c, u); err != nil {
				return err
			}
		}
	}
	return restoreGrants(ctx, from, c)
}

// restoreGrants lets the namespaces of a backup use the credentials for machines that they could
// use before. The new management cluster has credentials of its own, which are kept.
func restoreGrants(ctx context.Context, from objects.Set, c client.Client) error {
	for _, u := range from.Of(schema.GroupKind{Kind: "Secret"}) {
		granted, ok := u.GetAnnotations()[anywherev1.CredentialsNamespacesAnnotation]
		if !ok {
			continue
		}
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(u.GroupVersionKind())
		err := c.Get(ctx, client.ObjectKeyFromObject(u), live)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("restoring who may use Secret %q: %w", client.ObjectKeyFromObject(u), err)
		}
		if _, decided := live.Annotations[anywherev1.CredentialsNamespacesAnnotation]; err != nil || decided {
			continue // It is restored as a whole, or somebody has decided since.
		}
		before := live.DeepCopy()
		metav1.SetMetaDataAnnotation(&live.ObjectMeta, anywherev1.CredentialsNamespacesAnnotation, granted)
		if err := c.Patch(ctx, live, client.MergeFrom(before), client.FieldOwner(fieldManager)); err != nil {
			return fmt.Errorf("restoring who may use Secret %q: %w", client.ObjectKeyFromObject(u), err)
		}
	}
	return nil
}

// RestoreShared creates what belongs to no workload cluster and doesn't exist yet: add-ons and
// packages of the management cluster, classes, configs, and the Secrets that they use.
func RestoreShared(ctx context.Context, from objects.Set, to *rest.Config, manager string) error {
	c, err := newClient(to)
	if err != nil {
		return err
	}
	shared := sharing{manager: manager, packages: map[string]string{}}
	for _, u := range from.Of(packagesv1.GroupVersion.WithKind("PackageBundleController").GroupKind()) {
		shared.packages[u.GetName()] = ""
	}
	for _, u := range from {
		if !shared.restores(u) {
			continue
		}
		if err := createFresh(ctx, c, u); err != nil {
			return err
		}
	}
	return nil
}

// sharing decides which objects belong to no workload cluster.
type sharing struct {
	manager string
	// packages are the clusters with packages.
	packages map[string]string
}

func (s sharing) restores(u *unstructured.Unstructured) bool {
	if !ownedByClass(u) && len(u.GetOwnerReferences()) > 0 || u.GetDeletionTimestamp() != nil {
		return false // Its owner creates it again.
	}
	if name, ok := clusterOf(u); ok && (name != s.manager || u.GetKind() == "Secret") {
		return false
	}
	if kind := u.GroupVersionKind().GroupKind(); kind == packagesv1.GroupVersion.WithKind("Package").GroupKind() {
		return packageCluster(u, s.packages) == s.manager
	}
	return isShared(u)
}

// isShared reports whether objects of a kind exist beside clusters.
func isShared(u *unstructured.Unstructured) bool {
	switch kind := u.GroupVersionKind().GroupKind(); kind.Group {
	case anywherev1.GroupVersion.Group:
		return kind.Kind != "Cluster"
	case packagesv1.GroupVersion.Group:
		return kind.Kind == "PackageBundle"
	case addonsv1.GroupVersion.Group:
		return kind.Kind == "HelmChartProxy" || kind.Kind == "ClusterResourceSet"
	case clusterv1.GroupVersion.Group:
		return kind.Kind == "ClusterClass"
	case droverv1.GroupVersion.Group:
		return kind.Kind == "AuditRecord"
	case "":
		return kind.Kind == "ConfigMap" || kind.Kind == "Secret"
	default:
		return strings.HasSuffix(kind.Kind, "Template") && ownedByClass(u)
	}
}

func ownedByClass(u *unstructured.Unstructured) bool {
	return slices.ContainsFunc(u.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.Kind == "ClusterClass" })
}

// createFresh creates an object without what the lost API server added, unless one exists.
func createFresh(ctx context.Context, c client.Client, u *unstructured.Unstructured) error {
	fresh := u.DeepCopy()
	unstructured.RemoveNestedField(fresh.Object, "status")
	unstructured.RemoveNestedField(fresh.Object, "metadata", "managedFields")
	for _, field := range []string{"resourceVersion", "uid", "generation", "creationTimestamp", "selfLink", "ownerReferences", "finalizers"} {
		unstructured.RemoveNestedField(fresh.Object, "metadata", field)
	}
	if err := c.Create(ctx, fresh); err != nil && !alreadyExists(err) {
		return fmt.Errorf("restoring %s %q: %w", u.GetKind(), client.ObjectKeyFromObject(u), err)
	}
	return nil
}
