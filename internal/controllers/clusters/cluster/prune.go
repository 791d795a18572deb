package cluster

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/model/owner"
)

// prune deletes objects that are no longer wanted: removed groups with their health checks, and
// unused templates. It keeps the Pod network, because running Pods depend on it.
func (c *Controller) prune(ctx context.Context, s *scope) error {
	wanted := map[string]bool{}
	for _, o := range s.wanted.All() {
		wanted[identity(o)] = true
	}
	used := s.live.usedTemplates()
	for _, o := range s.live.removable() {
		if wanted[identity(o)] || isTemplate(o) && used[identity(o)] {
			continue
		}
		if err := c.remove(ctx, s, o); err != nil {
			return err
		}
	}
	return nil
}

func identity(o client.Object) string { return fmt.Sprintf("%T/%s", o, o.GetName()) }

// removable returns the objects that a change of the spec may leave behind.
func (l *live) removable() []client.Object {
	var out []client.Object
	for _, o := range l.workers {
		out = append(out, o)
	}
	for _, o := range l.checks {
		out = append(out, o)
	}
	for _, o := range l.templates {
		out = append(out, o)
	}
	for _, o := range l.bootstraps {
		out = append(out, o)
	}
	return out
}

// usedTemplates returns the templates that are, or will be, used for machines.
func (l *live) usedTemplates() map[string]bool {
	used := map[string]bool{}
	machines := func(name string) {
		used[identity(&infrav1.PacketMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}})] = true
	}
	both := func(s clusterv1.MachineSpec) {
		machines(s.InfrastructureRef.Name)
		used[identity(&bootstrapv1.KubeadmConfigTemplate{ObjectMeta: metav1.ObjectMeta{Name: s.Bootstrap.ConfigRef.Name}})] = true
	}
	if l.controlPlane != nil {
		machines(l.controlPlane.Spec.MachineTemplate.Spec.InfrastructureRef.Name)
	}
	if l.etcd != nil {
		machines(l.etcd.Spec.InfrastructureTemplate.Name)
	}
	for _, d := range l.workers {
		both(d.Spec.Template.Spec)
	}
	for _, set := range l.sets {
		both(set.Spec.Template.Spec)
	}
	for _, d := range l.devices {
		machines(d.Annotations[clusterv1.TemplateClonedFromNameAnnotation])
	}
	return used
}

// remove deletes an object of the Cluster, unless it is being deleted already.
func (c *Controller) remove(ctx context.Context, s *scope, o client.Object) error {
	if !o.GetDeletionTimestamp().IsZero() || !owner.Owns(s.cluster, o) {
		return nil
	}
	kind := kindOf(o, c.Client.Scheme())
	uid := o.GetUID()
	err := c.Client.Delete(ctx, o, client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s %q: %w", kind, o.GetName(), err)
	}
	if err == nil {
		c.event(s, removedReason, kind, o.GetName())
	}
	return nil
}
