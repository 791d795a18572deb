package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/clusters/build"
)

// CreatedByAnnotation is the user who made a Cluster. The API server says who that is, and nobody can change it.
const CreatedByAnnotation = "drover.dev/created-by"

// kubeconfigKey is the key of a Secret that holds a kubeconfig.
const kubeconfigKey = "value"

func kubeconfigName(cluster string) string { return cluster + "-kubeconfig" }

// granted is who was given access to what by this process. It is lost with it, and access is given again, which changes nothing.
type granted struct {
	mu   sync.Mutex
	last map[client.ObjectKey]string
}

// known says that the same was granted before, and notes it otherwise with done.
func (g *granted) known(key client.ObjectKey, what string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.last[key] == what
}

func (g *granted) done(key client.ObjectKey, what string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last == nil {
		g.last = map[client.ObjectKey]string{}
	}
	g.last[key] = what
}

func (g *granted) forget(key client.ObjectKey) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.last, key)
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
	return true, c.bind(ctx, s)
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
	return c.grant(ctx, s, wanted)
}

func accessMeta(c *anywherev1.Cluster) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: c.Namespace, Name: kubeconfigName(c.Name), Labels: build.Labels(c)}
}

// bind lets one user read one Secret.
func (c *Controller) bind(ctx context.Context, s *scope) error {
	user := s.cluster.Annotations[CreatedByAnnotation]
	if user == "" || c.access.known(s.key(), user) {
		return nil
	}
	for _, o := range accessOf(s.cluster, user) {
		if err := c.grant(ctx, s, o); err != nil {
			return err
		}
	}
	c.access.done(s.key(), user)
	return nil
}

func accessOf(c *anywherev1.Cluster, user string) []client.Object {
	role := &rbacv1.Role{ObjectMeta: accessMeta(c), Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{kubeconfigName(c.Name)}, Verbs: []string{"get"},
	}}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: accessMeta(c),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	return []client.Object{role, binding}
}

// grant writes an object in the Cluster's namespace. One that is there already and is not ours stays as it is.
func (c *Controller) grant(ctx context.Context, s *scope, wanted client.Object) error {
	kind := kindOf(wanted, c.Client.Scheme())
	there, ok := wanted.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is no object", wanted)
	}
	err := c.Live.Get(ctx, client.ObjectKeyFromObject(wanted), there)
	if err == nil && !owns(s.cluster, there) {
		c.noteForeign(s, kind, wanted.GetName())
		return nil
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading %s %q: %w", kind, client.ObjectKeyFromObject(wanted), err)
	}
	applied, err := intent(wanted, c.Client.Scheme())
	if err != nil {
		return err
	}
	err = c.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner(FieldManager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("applying %s %q: %w", kind, client.ObjectKeyFromObject(wanted), err)
	}
	return nil
}

// deleteAccess takes away what grantAccess has made.
func (c *Controller) deleteAccess(ctx context.Context, s *scope) (bool, error) {
	if s.cluster.Namespace == anywherev1.SystemNamespace {
		return true, nil
	}
	objects := append(accessOf(s.cluster, ""), &corev1.Secret{ObjectMeta: accessMeta(s.cluster)})
	var failed error
	for _, o := range objects {
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
