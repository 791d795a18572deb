package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/clusters/build"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/model/owner"
	"github.com/drover-dev/drover/internal/model/target"
)

// offerPackages enables packages on an initialized cluster, unless its spec disables them: it
// creates a namespace and a PackageBundleController, and grants the creator of the cluster access.
// It leaves existing objects unchanged, and grants nothing in a namespace that was not created for
// this Cluster.
func (c *Controller) offerPackages(ctx context.Context, s *scope) error {
	s.packages = &packagesState{}
	if packagesDisabled(s.cluster) {
		return c.removeLive(ctx, s, bundleController(s.cluster))
	}
	if s.live.cluster == nil || !ptr.Deref(s.live.cluster.Status.Initialization.ControlPlaneInitialized, false) {
		return nil
	}
	for _, o := range []client.Object{packageNamespace(s.cluster), bundleController(s.cluster)} {
		if err := c.createOnce(ctx, s, o); err != nil {
			return err
		}
	}
	namespace, err := c.readNamespace(ctx, packagesv1.NamespacePrefix+s.cluster.Name)
	if err != nil {
		return err
	}
	if s.packages.problem = namespaceProblem(s.live.cluster, namespace); s.packages.problem != nil {
		return nil
	}
	if err := c.revokeFormer(ctx, s); err != nil || s.cluster.Namespace == anywherev1.SystemNamespace {
		return err
	}
	return c.bind(ctx, s, packageAccess)
}

// revokeFormer deletes what a deleted Cluster granted in the namespace, which an administrator has
// given to this one: its creator could install packages on this cluster.
func (c *Controller) revokeFormer(ctx context.Context, s *scope) error {
	role, binding := packageAccess(s.cluster, "")
	for _, o := range []client.Object{binding, role} {
		there, err := c.seen(ctx, o)
		if err != nil {
			return err
		}
		if there.Labels[anywherev1.ClusterNameLabel] == "" || owner.Owns(s.cluster, there) {
			continue
		}
		err = c.Client.Delete(ctx, o, client.Preconditions{UID: &there.UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %s %q: %w", there.Kind, o.GetName(), err)
		}
		c.event(s, removedReason, there.Kind, o.GetName())
	}
	return nil
}

// packagesState is what offerPackages found out.
type packagesState struct {
	// problem says why the namespace of packages can't be used; nil if it can.
	problem *verdict
}

// namespaceProblem returns why a cluster may not use a namespace, or nil if it may. That of an
// administrator's cluster may have been prepared, or created by a move.
func namespaceProblem(c *clusterv1.Cluster, namespace *metav1.PartialObjectMetadata) *verdict {
	switch {
	case !namespace.DeletionTimestamp.IsZero():
		return ptr.To(no(anywherev1.NamespaceTerminatingReason, "Namespace %q is being deleted", namespace.Name))
	case owner.MayUse(c, namespace):
		return nil
	}
	return ptr.To(no(anywherev1.NamespaceNotOwnedReason, "Namespace %q was not created for this cluster; ask an administrator to delete it, or to annotate it with %s=%s",
		namespace.Name, anywherev1.ClusterUIDAnnotation, owner.UID(c)))
}

// readNamespace reads the metadata of a namespace, from the API server if the cache does not
// contain it yet.
func (c *Controller) readNamespace(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	namespace, err := metadataOf(&corev1.Namespace{}, c.Client.Scheme())
	if err != nil {
		return nil, err
	}
	err = c.Metadata.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if apierrors.IsNotFound(err) {
		err = c.Live.Get(ctx, client.ObjectKey{Name: name}, namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("reading namespace %q: %w", name, err)
	}
	return namespace, nil
}

func packagesDisabled(c *anywherev1.Cluster) bool {
	return c.Spec.Packages != nil && c.Spec.Packages.Disable
}

// packageNamespace returns the namespace of the packages of a cluster.
func packageNamespace(c *anywherev1.Cluster) *corev1.Namespace {
	namespace := target.Namespace(c.Name)
	maps.Copy(namespace.Labels, build.Labels(c))
	return namespace
}

// bundleController returns the PackageBundleController of a cluster. Administrators choose the
// bundle.
func bundleController(c *anywherev1.Cluster) *packagesv1.PackageBundleController {
	return &packagesv1.PackageBundleController{
		ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: c.Name, Labels: build.Labels(c)},
		Spec:       packagesv1.PackageBundleControllerSpec{ClusterNamespace: anywherev1.SystemNamespace},
	}
}

// packageAccess allows one user to manage packages of one cluster.
func packageAccess(c *anywherev1.Cluster, user string) (*rbacv1.Role, *rbacv1.RoleBinding) {
	meta := metav1.ObjectMeta{Namespace: packagesv1.NamespacePrefix + c.Name, Name: c.Name + "-packages", Labels: build.Labels(c)}
	return pair(meta, user, []rbacv1.PolicyRule{
		{APIGroups: []string{packagesv1.GroupVersion.Group}, Resources: []string{"packages"}, Verbs: []string{"create", "delete", "get", "list", "patch", "update", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"get", "list", "watch"}},
	})
}

// createOnce creates an object unless it exists, and never changes it afterwards.
func (c *Controller) createOnce(ctx context.Context, s *scope, o client.Object) error {
	owner.Mark(s.cluster, o)
	kind := kindOf(o, c.Client.Scheme())
	there, err := c.cached(ctx, o)
	if there || err != nil {
		return err
	}
	switch err := c.Client.Create(ctx, o); {
	case apierrors.IsAlreadyExists(err):
		return nil
	case err != nil:
		return fmt.Errorf("creating %s %q: %w", kind, o.GetName(), err)
	}
	c.event(s, createdReason, kind, o.GetName())
	return nil
}

// cached reports whether a cache contains an object. Of namespaces, only the metadata is cached.
func (c *Controller) cached(ctx context.Context, o client.Object) (bool, error) {
	var (
		reader client.Reader = c.Client
		into   client.Object = &packagesv1.PackageBundleController{}
	)
	if _, ok := o.(*corev1.Namespace); ok {
		meta, err := metadataOf(o, c.Client.Scheme())
		if err != nil {
			return false, err
		}
		reader, into = c.Metadata, meta
	}
	err := reader.Get(ctx, client.ObjectKeyFromObject(o), into)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading %s %q: %w", kindOf(o, c.Client.Scheme()), o.GetName(), err)
	}
	return err == nil, nil
}

// withdrawPackages deletes the objects of offerPackages with all packages. It waits for the
// PackageBundleController, but not for the namespace.
func (c *Controller) withdrawPackages(ctx context.Context, s *scope) error {
	bundles := bundleController(s.cluster)
	if err := c.removeLive(ctx, s, bundles); err != nil {
		return err
	}
	if bundles.UID != "" && owner.Owns(s.cluster, bundles) {
		wait := waitFor("PackageBundleController %q is being deleted", bundles.Name)
		wait.After = reconcile.ConflictRetry
		return wait
	}
	role, binding := packageAccess(s.cluster, "")
	var failed error
	for _, o := range []client.Object{role, binding, packageNamespace(s.cluster)} {
		failed = errors.Join(failed, c.removeLive(ctx, s, o))
	}
	return failed
}
