package cluster

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/controllers/clusters/build"
	"github.com/drover-dev/drover/internal/controllers/clusters/measure"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/model/owner"
	"github.com/drover-dev/drover/internal/model/spec"
)

// hold delays the deletion of a management cluster until its workload clusters are deleted.
func (c *Controller) hold(ctx context.Context, s *scope) error {
	if !controllerutil.ContainsFinalizer(s.cluster, anywherev1.ClusterFinalizer) {
		return reconcile.Stop
	}
	workloads, err := FindWorkloads(ctx, c.Client, s.cluster)
	if err != nil || workloads.None() {
		return err
	}
	return waitFor("Workload clusters still depend on this management cluster; delete them first: %s", workloads)
}

// Workloads are the clusters that a management cluster manages.
type Workloads struct {
	// names are those in the namespace of the management cluster, and elsewhere is the number of
	// others, whose names are not for its users.
	names     []string
	elsewhere int
}

// None reports whether there are none.
func (w Workloads) None() bool { return len(w.names) == 0 && w.elsewhere == 0 }

// String lists the names for a message.
func (w Workloads) String() string {
	switch {
	case w.elsewhere == 0:
		return text.FirstN(w.names, maxNames)
	case len(w.names) == 0:
		return fmt.Sprintf("%d in other namespaces", w.elsewhere)
	default:
		return fmt.Sprintf("%s, and %d in other namespaces", text.FirstN(w.names, maxNames), w.elsewhere)
	}
}

// FindWorkloads returns the clusters that a management cluster manages.
func FindWorkloads(ctx context.Context, reader client.Reader, c *anywherev1.Cluster) (out Workloads, err error) {
	if c.IsManaged() {
		return out, nil
	}
	all := &anywherev1.ClusterList{}
	if err := reader.List(ctx, all); err != nil {
		return out, fmt.Errorf("listing Clusters: %w", err)
	}
	for i := range all.Items {
		switch w := &all.Items[i]; {
		case !w.IsManaged() || w.ManagedBy() != c.Name && w.ManagedBy() != "":
		case w.Namespace == c.Namespace:
			out.names = append(out.names, w.Name)
		default:
			out.elsewhere++
		}
	}
	slices.Sort(out.names)
	return out, nil
}

// maxNames bounds the names in a message.
const maxNames = 5

// deleteCluster deletes the Cluster of Cluster API and waits for its machines and addresses to be
// deleted.
func (c *Controller) deleteCluster(ctx context.Context, s *scope) error {
	there := s.live.cluster
	if there == nil {
		return c.confirm(ctx, s, &clusterv1.Cluster{}, s.cluster.Name)
	}
	if err := c.completeReference(ctx, s, there); err != nil {
		return err
	}
	if err := c.remove(ctx, s, there); err != nil {
		return err
	}
	if len(s.live.machines) > 0 {
		return waitFor("%d machines are being deleted", len(s.live.machines))
	}
	return waitFor("Machines and addresses are being deleted")
}

// completeReference makes a Cluster refer to its control plane, as a process that ended in between
// did not: Cluster API deletes only what the Cluster refers to.
func (c *Controller) completeReference(ctx context.Context, s *scope, there *clusterv1.Cluster) error {
	if s.live.controlPlane == nil || there.Spec.ControlPlaneRef.IsDefined() || !there.DeletionTimestamp.IsZero() {
		return nil
	}
	before := there.DeepCopy()
	there.Spec.ControlPlaneRef = build.ControlPlaneReference(s.cluster.Name)
	if err := c.Client.Patch(ctx, there, client.MergeFrom(before), client.FieldOwner(FieldManager)); err != nil {
		return fmt.Errorf("completing Cluster %q: %w", there.Name, err)
	}
	return nil
}

// confirm asks the API server whether an object is deleted, because the cache may not contain a new
// object yet.
func (c *Controller) confirm(ctx context.Context, s *scope, into client.Object, name string) error {
	err := c.Live.Get(ctx, client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: name}, into)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if !owner.Owns(s.cluster, into) {
		return nil
	}
	wait := waitFor("%s %q is being deleted", kindOf(into, c.Client.Scheme()), name)
	wait.After = reconcile.ConflictRetry
	return wait
}

// deleteNetwork deletes the HelmChartProxy of the Pod network. Nothing is left to uninstall it
// from.
func (c *Controller) deleteNetwork(ctx context.Context, s *scope) error {
	if s.live.network == nil {
		return c.confirm(ctx, s, &addonsv1.HelmChartProxy{}, build.NetworkName(s.cluster.Name))
	}
	if err := c.remove(ctx, s, s.live.network); err != nil {
		return err
	}
	return waitFor("HelmChartProxy %q is being deleted", s.live.network.Name)
}

// deleteRest deletes the objects that Cluster API leaves, and waits for those with finalizers.
func (c *Controller) deleteRest(ctx context.Context, s *scope) error {
	var wait *reconcile.Wait
	for _, o := range s.live.all() {
		if err := c.remove(ctx, s, o); err != nil {
			return err
		}
		if owner.Owns(s.cluster, o) && len(o.GetFinalizers()) > 0 {
			wait = waitFor("%s %q is being deleted", kindOf(o, c.Client.Scheme()), o.GetName())
		}
	}
	if wait != nil {
		return wait
	}
	secrets := &corev1.SecretList{}
	err := c.Live.List(ctx, secrets, client.InNamespace(anywherev1.SystemNamespace), client.MatchingLabels(build.Labels(s.cluster)))
	if err != nil {
		return fmt.Errorf("listing Secrets of Cluster %q: %w", s.key(), err)
	}
	for i := range secrets.Items {
		if err := c.remove(ctx, s, &secrets.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// deleteConfigs deletes the configs that only this Cluster references.
func (c *Controller) deleteConfigs(ctx context.Context, s *scope) error {
	all := &anywherev1.ClusterList{}
	if err := c.Client.List(ctx, all, client.InNamespace(s.cluster.Namespace)); err != nil {
		return fmt.Errorf("listing Clusters: %w", err)
	}
	shared := map[anywherev1.Ref]bool{}
	for i := range all.Items {
		if all.Items[i].Name == s.cluster.Name {
			continue
		}
		for _, ref := range spec.References(&all.Items[i]) {
			shared[ref] = true
		}
	}
	for _, ref := range spec.References(s.cluster) {
		if shared[ref] {
			continue
		}
		if err := c.deleteConfig(ctx, s, ref); err != nil {
			return err
		}
	}
	return nil
}

func (c *Controller) deleteConfig(ctx context.Context, s *scope, ref anywherev1.Ref) error {
	made, err := c.Client.Scheme().New(anywherev1.GroupVersion.WithKind(ref.Kind))
	config, ok := made.(client.Object)
	if err != nil || !ok {
		return nil //nolint:nilerr // an unsupported kind has no objects
	}
	config.SetNamespace(s.cluster.Namespace)
	config.SetName(ref.Name)
	if connected, err := c.connectsRepository(ctx, config); err != nil || connected {
		return err
	}
	err = c.Client.Delete(ctx, config)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s %q: %w", ref.Kind, ref.Name, err)
	}
	return nil
}

// connectsRepository reports whether a config connects its namespace with a repository. Clusters to
// come need it: without it, nobody would read what is committed.
func (c *Controller) connectsRepository(ctx context.Context, config client.Object) (bool, error) {
	flux, ok := config.(*anywherev1.FluxConfig)
	if !ok {
		return false, nil
	}
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(flux), flux); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return meta.IsStatusConditionTrue(flux.Status.Conditions, anywherev1.RepositoryConnected), nil
}

// release removes the finalizer.
func (c *Controller) release(ctx context.Context, s *scope) error {
	controllerutil.RemoveFinalizer(s.cluster, anywherev1.ClusterFinalizer)
	s.cluster.Status = *s.visit.Before().Status.DeepCopy() // Nobody is left to read it.
	if err := client.IgnoreNotFound(s.visit.Save(ctx)); err != nil {
		return err
	}
	s.released = true
	c.forget(s.key())
	c.Figures.Report(ctx, s.cluster, measure.Gone(s.cluster, c.Clock.Now()))
	c.Events.Event(s.cluster, corev1.EventTypeNormal, deletedReason, "Deleted all machines and addresses")
	return reconcile.Stop
}
