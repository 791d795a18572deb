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
)

// CreatedByAnnotation is the user who made a Cluster. The API server says who that is, and nobody can change it.
const CreatedByAnnotation = "drover.dev/created-by"

// kubeconfigKey is the key of a Secret that holds a kubeconfig.
const kubeconfigKey = "value"

func kubeconfigName(cluster string) string { return cluster + "-kubeconfig" }

// given is to whom something was given, and the versions of the Role and the RoleBinding that say so.
type given struct{ user, role, binding string }

// granted is what this process has granted. It is lost with it, and access is given again, which changes nothing.
type granted struct {
	mu   sync.Mutex
	last map[grantKey]given
}

// grantKey is a Role for a Cluster.
type grantKey struct{ cluster, role client.ObjectKey }

// known says that nothing has changed since the last time.
func (g *granted) known(key grantKey, now given) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	last, ok := g.last[key]
	return ok && last == now
}

func (g *granted) done(key grantKey, what given) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last == nil {
		g.last = map[grantKey]given{}
	}
	g.last[key] = what
}

func (g *granted) forget(cluster client.ObjectKey) {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.last, func(k grantKey, _ given) bool { return k.cluster == cluster })
}

// grantAccess puts the kubeconfig where the Cluster is, and lets exactly that be read by who made the Cluster. In the system's namespace,
// where credentials are, nobody is given anything.
func (c *Controller) grantAccess(ctx context.Context, s *scope) (bool, error) {
	if s.cluster.Namespace == anywherev1.SystemNamespace {
		return true, nil
	}
	data, err := c.Secrets.Data(ctx, "Secret", client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: kubeconfigName(s.cluster.Name)})
	if apierrors.IsNotFound(err) {
		return true, nil // there is an event when it comes
	}
	if err != nil {
		return false, fmt.Errorf("reading the kubeconfig of Cluster %q: %w", s.key(), err)
	}
	if err := c.copyKubeconfig(ctx, s, data[kubeconfigKey]); err != nil {
		return false, err
	}
	return true, c.bind(ctx, s, accessOf)
}

func (c *Controller) copyKubeconfig(ctx context.Context, s *scope, kubeconfig []byte) error {
	wanted := &corev1.Secret{ObjectMeta: accessMeta(s.cluster), Type: corev1.SecretTypeOpaque, Data: map[string][]byte{kubeconfigKey: kubeconfig}}
	there, err := c.Secrets.Data(ctx, "Secret", client.ObjectKeyFromObject(wanted))
	if err == nil && bytes.Equal(there[kubeconfigKey], kubeconfig) {
		return nil
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Secret %q: %w", client.ObjectKeyFromObject(wanted), err)
	}
	_, err = c.grant(ctx, s, wanted)
	return err
}

func accessMeta(c *anywherev1.Cluster) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: c.Namespace, Name: kubeconfigName(c.Name), Labels: build.Labels(c)}
}

// bind gives a Role to who made a Cluster. Of what says so only the versions are watched: if one is another than what was written, it is
// written again.
func (c *Controller) bind(ctx context.Context, s *scope, of func(c *anywherev1.Cluster, user string) (*rbacv1.Role, *rbacv1.RoleBinding)) (err error) {
	user := s.cluster.Annotations[CreatedByAnnotation]
	if user == "" {
		return nil
	}
	role, binding := of(s.cluster, user)
	key, now := grantKey{s.key(), client.ObjectKeyFromObject(role)}, given{user: user}
	if now.role, err = c.seen(ctx, role); err != nil {
		return err
	}
	if now.binding, err = c.seen(ctx, binding); err != nil {
		return err
	}
	if c.access.known(key, now) {
		return nil
	}
	if now.role, err = c.grant(ctx, s, role); err != nil {
		return err
	}
	if now.binding, err = c.grant(ctx, s, binding); err != nil {
		return err
	}
	c.access.done(key, now)
	return nil
}

// seen is the version of an object that the cache has; empty if it has none.
func (c *Controller) seen(ctx context.Context, o client.Object) (string, error) {
	meta, err := metadataOf(o, c.Client.Scheme())
	if err != nil {
		return "", err
	}
	err = c.Access.Get(ctx, client.ObjectKeyFromObject(o), meta, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading the version of %s %q: %w", meta.Kind, client.ObjectKeyFromObject(o), err)
	}
	return meta.ResourceVersion, nil
}

// accessOf lets one user read one Secret.
func accessOf(c *anywherev1.Cluster, user string) (*rbacv1.Role, *rbacv1.RoleBinding) {
	return pair(accessMeta(c), user, []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{kubeconfigName(c.Name)}, Verbs: []string{"get"},
	}})
}

// pair is a Role, and one user who has it.
func pair(meta metav1.ObjectMeta, user string, rules []rbacv1.PolicyRule) (*rbacv1.Role, *rbacv1.RoleBinding) {
	return &rbacv1.Role{ObjectMeta: meta, Rules: rules}, &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
}

// grant writes an object in the Cluster's namespace, and returns its version. One that is there already and is not ours stays as it is.
func (c *Controller) grant(ctx context.Context, s *scope, wanted client.Object) (version string, err error) {
	kind := kindOf(wanted, c.Client.Scheme())
	there, ok := wanted.DeepCopyObject().(client.Object)
	if !ok {
		return "", fmt.Errorf("%T is no object", wanted)
	}
	err = c.Live.Get(ctx, client.ObjectKeyFromObject(wanted), there)
	if err == nil && !owns(s.cluster, there) {
		c.noteForeign(s, kind, wanted.GetName())
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

// sameRole is false for a RoleBinding to something else, which can only be made anew.
func sameRole(wanted, there client.Object) bool {
	a, ok := wanted.(*rbacv1.RoleBinding)
	b, ok2 := there.(*rbacv1.RoleBinding)
	return !ok || !ok2 || a.RoleRef == b.RoleRef
}

// deleteAccess takes away what grantAccess has made.
func (c *Controller) deleteAccess(ctx context.Context, s *scope) (bool, error) {
	if s.cluster.Namespace == anywherev1.SystemNamespace {
		return true, nil
	}
	role, binding := accessOf(s.cluster, "")
	var failed error
	for _, o := range []client.Object{role, binding, &corev1.Secret{ObjectMeta: accessMeta(s.cluster)}} {
		failed = errors.Join(failed, c.removeLive(ctx, s, o))
	}
	return failed == nil, failed
}

// removeLive deletes what is not in the cache.
func (c *Controller) removeLive(ctx context.Context, s *scope, o client.Object) error {
	err := c.Live.Get(ctx, client.ObjectKeyFromObject(o), o)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	return c.remove(ctx, s, o)
}
