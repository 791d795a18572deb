package active

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/workload"
)

// copying executes a plan on one cluster.
type copying struct {
	through *workload.Cluster
	// owner is the name of the cluster.
	owner   string
	client  kubernetes.Interface
	plan    plan
	sources map[string]*corev1.Secret
	now     func() time.Time

	written map[secretKey]writtenCopy
	others  map[secretKey]string
	removed []secretKey
	// withdrawnAll is set after all copies were deleted.
	withdrawnAll bool
}

// do executes the whole plan. A failure doesn't stop the rest.
func (c *copying) do(ctx context.Context) (any, error) {
	c.client, c.written, c.others = c.through.Kubernetes(), map[secretKey]writtenCopy{}, map[secretKey]string{}
	failures, first := 0, error(nil)
	note := func(err error) {
		if err != nil {
			failures++
		}
		if first == nil {
			first = err
		}
	}
	for _, at := range c.plan.write {
		note(c.write(ctx, at))
	}
	for _, at := range c.plan.remove {
		note(c.remove(ctx, at))
	}
	if first != nil {
		first = fmt.Errorf("%d of %d Secrets on the cluster could not be updated: %w",
			failures, len(c.plan.write)+len(c.plan.remove), first)
	}
	return c, first
}

// write creates or updates a copy.
func (c *copying) write(ctx context.Context, at secretKey) error {
	source := c.sources[at.name]
	if source == nil {
		return nil
	}
	wanted := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: at.namespace, Name: at.name, Labels: map[string]string{copyLabel: c.owner},
			Annotations: map[string]string{stampAnnotation: stamp(source)},
		},
		Type: source.Type, Data: source.Data,
	}
	made, err := c.create(ctx, wanted)
	action := "create"
	if apierrors.IsAlreadyExists(err) {
		action = "update"
		made, err = c.replace(ctx, wanted)
	}
	if err != nil {
		return fmt.Errorf("writing Secret %q: %w", at, err)
	}
	if made == nil {
		c.others[at] = stamp(source)
		return nil
	}
	copiedTotal.WithLabelValues("cluster", action).Inc()
	c.written[at] = writtenCopy{stamp: stamp(source), version: made.ResourceVersion, at: c.now()}
	return nil
}

// create creates a Secret and, if necessary, the shared namespace. Other namespaces are created by
// releases.
func (c *copying) create(ctx context.Context, wanted *corev1.Secret) (*corev1.Secret, error) {
	made, err := c.client.CoreV1().Secrets(wanted.Namespace).Create(ctx, wanted, metav1.CreateOptions{})
	if !apierrors.IsNotFound(err) || wanted.Namespace != packagesv1.Namespace {
		return made, err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: wanted.Namespace}}
	if _, err := c.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	return c.client.CoreV1().Secrets(wanted.Namespace).Create(ctx, wanted, metav1.CreateOptions{})
}

// replace updates an existing copy. It returns nil if Drover didn't create the Secret.
func (c *copying) replace(ctx context.Context, wanted *corev1.Secret) (*corev1.Secret, error) {
	secrets := c.client.CoreV1().Secrets(wanted.Namespace)
	there, err := secrets.Get(ctx, wanted.Name, metav1.GetOptions{})
	if err != nil || there.Labels[copyLabel] != c.owner {
		return nil, err
	}
	if there.Type != wanted.Type { // the type is immutable
		if err := secrets.Delete(ctx, wanted.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(there.UID))}); err != nil {
			return nil, err
		}
		return secrets.Create(ctx, wanted, metav1.CreateOptions{})
	}
	wanted.ResourceVersion = there.ResourceVersion
	return secrets.Update(ctx, wanted, metav1.UpdateOptions{})
}

// remove deletes a copy.
func (c *copying) remove(ctx context.Context, at secretKey) error {
	secrets := c.client.CoreV1().Secrets(at.namespace)
	there, err := secrets.Get(ctx, at.name, metav1.GetOptions{})
	if err == nil && there.Labels[copyLabel] == c.owner {
		err = secrets.Delete(ctx, at.name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(there.UID))})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting Secret %q: %w", at, err)
	}
	copiedTotal.WithLabelValues("cluster", "delete").Inc()
	c.removed = append(c.removed, at)
	return nil
}

// withdraw deletes all copies on the cluster, including unknown ones.
func (c *copying) withdraw(ctx context.Context) (any, error) {
	c.client = c.through.Kubernetes()
	all, err := c.client.CoreV1().Secrets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: copiesWatch(c.owner).Selector})
	if err != nil {
		return c, fmt.Errorf("listing credentials on the cluster: %w", err)
	}
	for i := range all.Items {
		if err := c.remove(ctx, secretKey{all.Items[i].Namespace, all.Items[i].Name}); err != nil {
			return c, err
		}
	}
	c.withdrawnAll = true
	return c, nil
}
