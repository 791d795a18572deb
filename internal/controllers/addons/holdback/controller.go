// Package holdback uninstalls add-ons before their cluster is deleted. Where a HelmReleaseProxy asks
// for that, every Machine of the cluster gets a deletion hook, which Cluster API waits for before it
// deprovisions the machine.
//
//	Cluster       Machine     such releases   hook
//	alive         alive       some            added
//	alive         alive       none            removed
//	alive, gone   deleting    any             removed
//	terminating   any         some            kept, and the releases are deleted
//	terminating   any         none            removed
//
// It uninstalls nothing itself. Start with Reconcile; decide.go implements the table.
package holdback

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/index"
)

// Hook is the deletion hook. Cluster API waits for it even if it doesn't drain the node, which it
// skips when the whole Cluster is deleted.
const Hook = clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/drover-addons"

// Controller reconciles Machines.
type Controller struct {
	// Client reads from the manager's cache.
	Client ctrlclient.Client
	// Indexed reports that the cache has the indexes of package index.
	Indexed bool
	// WatchFilter limits the controller to Machines with this value of the watch label; empty means all.
	WatchFilter string
}

// Reconcile adds or removes the hook of a Machine.
func (c *Controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	machine := &clusterv1.Machine{}
	if err := c.Client.Get(ctx, req.NamespacedName, machine); err != nil {
		return ctrl.Result{}, ctrlclient.IgnoreNotFound(err)
	}
	cluster, err := c.clusterOf(ctx, machine)
	if err != nil {
		return ctrl.Result{}, err
	}
	if cluster != nil && annotations.IsPaused(cluster, machine) {
		return ctrl.Result{}, nil
	}
	releases, err := c.uninstalledFirst(ctx, machine)
	if err != nil {
		return ctrl.Result{}, err
	}
	f := facts{cluster: alive, deleting: !machine.DeletionTimestamp.IsZero(), releases: len(releases)}
	_, f.hooked = machine.Annotations[Hook]
	switch {
	case cluster == nil:
		f.cluster = gone
	case !cluster.DeletionTimestamp.IsZero():
		f.cluster = terminating
		if err := c.uninstall(ctx, releases); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, c.apply(ctx, machine, decide(f))
}

// clusterOf returns nil if the Cluster is gone.
func (c *Controller) clusterOf(ctx context.Context, m *clusterv1.Machine) (*clusterv1.Cluster, error) {
	cluster := &clusterv1.Cluster{}
	err := c.Client.Get(ctx, clusterKey(m), cluster)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading cluster %q: %w", m.Spec.ClusterName, err)
	}
	return cluster, nil
}

func clusterKey(m *clusterv1.Machine) ctrlclient.ObjectKey {
	return ctrlclient.ObjectKey{Namespace: m.Namespace, Name: m.Spec.ClusterName}
}

// uninstalledFirst lists the releases on the Machine's cluster that are uninstalled before it is
// deleted.
func (c *Controller) uninstalledFirst(ctx context.Context, m *clusterv1.Machine) ([]addonsv1.HelmReleaseProxy, error) {
	all, err := index.Releases{Reader: c.Client, Indexed: c.Indexed}.OfCluster(ctx, clusterKey(m))
	if err != nil {
		return nil, err
	}
	var out []addonsv1.HelmReleaseProxy
	for i := range all {
		if uninstallsFirst(&all[i]) {
			out = append(out, all[i])
		}
	}
	return out, nil
}

func uninstallsFirst(r *addonsv1.HelmReleaseProxy) bool {
	return r.Spec.Options.Uninstall != nil && r.Spec.Options.Uninstall.BeforeCluster
}

// uninstall deletes releases, including those without a HelmChartProxy, which no other controller
// deletes.
func (c *Controller) uninstall(ctx context.Context, releases []addonsv1.HelmReleaseProxy) error {
	for i := range releases {
		r := &releases[i]
		if !r.DeletionTimestamp.IsZero() || annotations.HasPaused(r) {
			continue
		}
		err := c.Client.Delete(ctx, r.DeepCopy(), ctrlclient.Preconditions{UID: &r.UID})
		if ctrlclient.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting HelmReleaseProxy %q before its cluster: %w", r.Name, err)
		}
	}
	return nil
}

func (c *Controller) apply(ctx context.Context, m *clusterv1.Machine, a action) error {
	before := m.DeepCopy()
	switch a {
	case addHook:
		if m.Annotations == nil {
			m.Annotations = map[string]string{}
		}
		m.Annotations[Hook] = ""
	case removeHook:
		delete(m.Annotations, Hook)
	default:
		return nil
	}
	err := c.Client.Patch(ctx, m, ctrlclient.MergeFrom(before))
	if ctrlclient.IgnoreNotFound(err) != nil {
		return fmt.Errorf("updating the deletion hook of machine %q: %w", m.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("Updated the deletion hook of a machine", "machine", m.Name, "hooked", a == addHook)
	return nil
}
