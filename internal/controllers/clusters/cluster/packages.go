package cluster

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/clusters/build"
	"github.com/drover-dev/drover/internal/controllers/fresh"
)

// offerPackages lets packages be installed on a cluster that is there, unless its spec says otherwise: it gets a namespace for them and an
// active bundle, and who made the cluster may use the namespace. What somebody else has made before stays as it is.
func (c *Controller) offerPackages(ctx context.Context, s *scope) (bool, error) {
	if packagesOff(s.cluster) {
		return true, c.removeLive(ctx, s, bundlesOf(s.cluster))
	}
	if s.live.cluster == nil || !ptr.Deref(s.live.cluster.Status.Initialization.ControlPlaneInitialized, false) {
		return true, nil
	}
	for _, o := range []client.Object{roomOf(s.cluster), bundlesOf(s.cluster)} {
		if err := c.makeOnce(ctx, s, o); err != nil {
			return false, err
		}
	}
	if s.cluster.Namespace == anywherev1.SystemNamespace {
		return true, nil
	}
	return true, c.bind(ctx, s, installersOf)
}

func packagesOff(c *anywherev1.Cluster) bool {
	return c.Spec.Packages != nil && c.Spec.Packages.Disable
}

// roomOf is the namespace of a cluster's packages.
func roomOf(c *anywherev1.Cluster) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: packagesv1.NamespacePrefix + c.Name, Labels: build.Labels(c)}}
}

// bundlesOf says that a cluster has packages. Which bundle it uses is up to whoever looks after it.
func bundlesOf(c *anywherev1.Cluster) *packagesv1.PackageBundleController {
	return &packagesv1.PackageBundleController{
		ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: c.Name, Labels: build.Labels(c)},
		Spec:       packagesv1.PackageBundleControllerSpec{ClusterNamespace: anywherev1.SystemNamespace},
	}
}

// installersOf lets one user install packages on one cluster.
func installersOf(c *anywherev1.Cluster, user string) (*rbacv1.Role, *rbacv1.RoleBinding) {
	meta := metav1.ObjectMeta{Namespace: packagesv1.NamespacePrefix + c.Name, Name: c.Name + "-packages", Labels: build.Labels(c)}
	return pair(meta, user, []rbacv1.PolicyRule{
		{APIGroups: []string{packagesv1.GroupVersion.Group}, Resources: []string{"packages"}, Verbs: []string{"create", "delete", "get", "list", "patch", "update", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"get", "list", "watch"}},
	})
}

// makeOnce makes an object unless somebody has. What is in it is not ours to say from then on.
func (c *Controller) makeOnce(ctx context.Context, s *scope, o client.Object) error {
	kind := kindOf(o, c.Client.Scheme())
	there, err := c.known(ctx, o)
	if there || err != nil {
		return err
	}
	switch err := c.Client.Create(ctx, o); {
	case apierrors.IsAlreadyExists(err):
		return nil
	case err != nil:
		return fmt.Errorf("making %s %q: %w", kind, o.GetName(), err)
	}
	c.note(s, createdReason, kind, o.GetName())
	return nil
}

// known says that a cache has an object. Of namespaces only the metadata is watched.
func (c *Controller) known(ctx context.Context, o client.Object) (bool, error) {
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

// withdrawPackages removes what offerPackages has made, with all packages: there is no cluster left to uninstall them from. Who watches over
// the bundle is waited for; the namespace goes in its own time.
func (c *Controller) withdrawPackages(ctx context.Context, s *scope) (bool, error) {
	bundles := bundlesOf(s.cluster)
	if err := c.removeLive(ctx, s, bundles); err != nil {
		return false, err
	}
	if bundles.UID != "" && owns(s.cluster, bundles) {
		s.waiting = fmt.Sprintf("PackageBundleController %q is being removed", bundles.Name)
		s.after = fresh.Retry
		return false, nil
	}
	role, binding := installersOf(s.cluster, "")
	var failed error
	for _, o := range []client.Object{role, binding, roomOf(s.cluster)} {
		failed = errors.Join(failed, c.removeLive(ctx, s, o))
	}
	return failed == nil, failed
}
