package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/clusters/build"
	"github.com/drover-dev/drover/internal/model/owner"
)

// CreatedByAnnotation holds the user who created a Cluster. The webhook sets it, and users can't
// change it.
const CreatedByAnnotation = "drover.dev/created-by"

// kubeconfigKey is the key of the kubeconfig in a Secret.
const kubeconfigKey = "value"

func kubeconfigName(cluster string) string { return cluster + "-kubeconfig" }

// grantState is the user that has access, and the versions of the Role and the RoleBinding.
type grantState struct{ user, role, binding string }

// grants are what this process has granted. After a restart, access is granted again, which changes
// nothing.
type grants struct {
	mu   sync.Mutex
	last map[grantKey]grantState
}

// grantKey is a Role for a Cluster.
type grantKey struct{ cluster, role client.ObjectKey }

// known reports whether nothing has changed since the last grant.
func (g *grants) known(key grantKey, now grantState) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	last, ok := g.last[key]
	return ok && last == now
}

func (g *grants) done(key grantKey, what grantState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last == nil {
		g.last = map[grantKey]grantState{}
	}
	g.last[key] = what
}

func (g *grants) forget(cluster client.ObjectKey) {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.last, func(k grantKey, _ grantState) bool { return k.cluster == cluster })
}

// grantAccess copies the kubeconfig into the namespace of the Cluster and allows its creator to
// read exactly that Secret. It grants nothing in the system namespace, which contains credentials,
// and copies no Secret that only has the right name.
func (c *Controller) grantAccess(ctx context.Context, s *scope) error {
	if s.cluster.Namespace == anywherev1.SystemNamespace {
		return nil
	}
	data, err := c.Secrets.Data(ctx, "Secret", client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: kubeconfigName(s.cluster.Name)})
	if apierrors.IsNotFound(err) {
		return nil // Creating it triggers a reconcile.
	}
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of Cluster %q: %w", s.key(), err)
	}
	own, err := c.ownsKubeconfig(ctx, s)
	if err != nil || !own {
		return err
	}
	if copied, err := c.copyKubeconfig(ctx, s, data[kubeconfigKey]); err != nil || !copied {
		return err
	}
	return c.bind(ctx, s, accessOf)
}

// ownsKubeconfig reports whether the control plane of the Cluster wrote the kubeconfig in the
// system namespace.
func (c *Controller) ownsKubeconfig(ctx context.Context, s *scope) (bool, error) {
	secret, err := metadataOf(&corev1.Secret{}, c.Client.Scheme())
	if err != nil {
		return false, err
	}
	key := client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: kubeconfigName(s.cluster.Name)}
	if err := c.Metadata.Get(ctx, key, secret); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if s.live.controlPlane != nil && metav1.IsControlledBy(secret, s.live.controlPlane) {
		return true, nil
	}
	c.eventForeign(s, "Secret", key.Name)
	return false, nil
}

// copyKubeconfig reports whether the copy belongs to the Cluster.
func (c *Controller) copyKubeconfig(ctx context.Context, s *scope, kubeconfig []byte) (bool, error) {
	wanted := &corev1.Secret{ObjectMeta: accessMeta(s.cluster), Type: corev1.SecretTypeOpaque, Data: map[string][]byte{kubeconfigKey: kubeconfig}}
	there, err := c.Secrets.Data(ctx, "Secret", client.ObjectKeyFromObject(wanted))
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading Secret %q: %w", client.ObjectKeyFromObject(wanted), err)
	}
	if err == nil && bytes.Equal(there[kubeconfigKey], kubeconfig) {
		if marked, err := c.isMarked(ctx, s, wanted); err != nil || marked {
			return marked, err
		}
	}
	version, err := c.grant(ctx, s, wanted)
	return version != "", err
}

// isMarked reports whether a Secret has the UID of the Cluster.
func (c *Controller) isMarked(ctx context.Context, s *scope, secret *corev1.Secret) (bool, error) {
	meta, err := metadataOf(secret, c.Client.Scheme())
	if err != nil {
		return false, err
	}
	err = c.Metadata.Get(ctx, client.ObjectKeyFromObject(secret), meta)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading the metadata of Secret %q: %w", client.ObjectKeyFromObject(secret), err)
	}
	return meta.Annotations[anywherev1.ClusterUIDAnnotation] == owner.UID(s.cluster), nil
}

func accessMeta(c *anywherev1.Cluster) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: c.Namespace, Name: kubeconfigName(c.Name), Labels: build.Labels(c)}
}

// bind binds a Role to the creator of a Cluster. Only the versions of both objects are cached: if
// one differs from the version that was written, it is written again.
func (c *Controller) bind(ctx context.Context, s *scope, of func(c *anywherev1.Cluster, user string) (*rbacv1.Role, *rbacv1.RoleBinding)) (err error) {
	user := s.cluster.Annotations[CreatedByAnnotation]
	if user == "" {
		return nil
	}
	role, binding := of(s.cluster, user)
	key, now := grantKey{s.key(), client.ObjectKeyFromObject(role)}, grantState{user: user}
	for o, version := range map[client.Object]*string{role: &now.role, binding: &now.binding} {
		there, err := c.seen(ctx, o)
		if err != nil {
			return err
		}
		*version = there.ResourceVersion
	}
	if c.access.known(key, now) {
		return nil
	}
	if now.role, err = c.grant(ctx, s, role); err != nil || now.role == "" {
		return err
	}
	if now.binding, err = c.grant(ctx, s, binding); err != nil || now.binding == "" {
		return err
	}
	c.access.done(key, now)
	return nil
}

// seen returns the metadata of an object in the cache, which is empty if it is not there.
func (c *Controller) seen(ctx context.Context, o client.Object) (*metav1.PartialObjectMetadata, error) {
	meta, err := metadataOf(o, c.Client.Scheme())
	if err != nil {
		return nil, err
	}
	err = c.Access.Get(ctx, client.ObjectKeyFromObject(o), meta, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the metadata of %s %q: %w", meta.Kind, client.ObjectKeyFromObject(o), err)
	}
	return meta, nil
}

// accessOf allows one user to read the kubeconfig.
func accessOf(c *anywherev1.Cluster, user string) (*rbacv1.Role, *rbacv1.RoleBinding) {
	return pair(accessMeta(c), user, []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{kubeconfigName(c.Name)}, Verbs: []string{"get"},
	}})
}

// pair returns a Role and a RoleBinding for one user.
func pair(meta metav1.ObjectMeta, user string, rules []rbacv1.PolicyRule) (*rbacv1.Role, *rbacv1.RoleBinding) {
	return &rbacv1.Role{ObjectMeta: meta, Rules: rules}, &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
}

// grant applies an object and returns its version. It leaves a foreign object unchanged and returns
// no version, so that nothing is granted by it.
func (c *Controller) grant(ctx context.Context, s *scope, wanted client.Object) (version string, err error) {
	owner.Mark(s.cluster, wanted)
	kind := kindOf(wanted, c.Client.Scheme())
	there, ok := wanted.DeepCopyObject().(client.Object)
	if !ok {
		return "", fmt.Errorf("%T is not an object", wanted)
	}
	err = c.Live.Get(ctx, client.ObjectKeyFromObject(wanted), there)
	if err == nil && !owner.Owns(s.cluster, there) {
		c.eventForeign(s, kind, wanted.GetName())
		return "", nil
	}
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading %s %q: %w", kind, client.ObjectKeyFromObject(wanted), err)
	}
	if err == nil && !sameRole(wanted, there) {
		if err := c.remove(ctx, s, there); err != nil {
			return "", err
		}
	}
	applied, err := intent(wanted, c.Client.Scheme())
	if err != nil {
		return "", err
	}
	err = c.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner(FieldManager), client.ForceOwnership)
	if err != nil {
		return "", fmt.Errorf("applying %s %q: %w", kind, client.ObjectKeyFromObject(wanted), err)
	}
	return applied.GetResourceVersion(), nil
}

// sameRole reports whether a RoleBinding can be updated. The role of a RoleBinding is immutable.
func sameRole(wanted, there client.Object) bool {
	a, ok := wanted.(*rbacv1.RoleBinding)
	b, ok2 := there.(*rbacv1.RoleBinding)
	return !ok || !ok2 || a.RoleRef == b.RoleRef
}

// deleteAccess deletes the objects of grantAccess.
func (c *Controller) deleteAccess(ctx context.Context, s *scope) error {
	if s.cluster.Namespace == anywherev1.SystemNamespace {
		return nil
	}
	role, binding := accessOf(s.cluster, "")
	var failed error
	for _, o := range []client.Object{role, binding, &corev1.Secret{ObjectMeta: accessMeta(s.cluster)}} {
		failed = errors.Join(failed, c.removeLive(ctx, s, o))
	}
	return failed
}

// removeLive deletes an object that is not cached.
func (c *Controller) removeLive(ctx context.Context, s *scope, o client.Object) error {
	err := c.Live.Get(ctx, client.ObjectKeyFromObject(o), o)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	return c.remove(ctx, s, o)
}
