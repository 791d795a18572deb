// Package holdback uninstalls add-ons before their cluster is deleted. Where a HelmReleaseProxy
// asks for that, every Machine of the cluster gets a deletion hook, which Cluster API waits for
// before it deprovisions the machine.
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
	"github.com/drover-dev/drover/internal/controllers/reconcile"
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
	// WatchFilter limits the controller to Machines with this value of the watch label; empty means
	// all.
	WatchFilter string
}

// scope is one reconcile of a Machine.
type scope struct {
	*reconcile.Visit[*clusterv1.Machine]

	cluster lifetime
	// releases are those that are uninstalled before the Cluster is deleted.
	releases []addonsv1.HelmReleaseProxy
}

// Reconcile adds or removes the hook of a Machine.
func (c *Controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	opening := reconcile.Opening[*clusterv1.Machine]{Client: c.Client}
	visit, err := opening.Open(ctx, req.NamespacedName, &clusterv1.Machine{})
	if err != nil || visit == nil {
		return reconcile.Result(err, 0)
	}
	err = reconcile.Run(ctx, &scope{Visit: visit}, []reconcile.Step[*scope]{
		{Doing: "reading the cluster", Run: c.readCluster},
		{Doing: "listing releases", Run: c.listReleases},
		{Doing: "uninstalling releases", Run: c.uninstall},
		{Doing: "updating the deletion hook", Run: c.updateHook},
	})
	return visit.Close(ctx, err, 0)
}

// readCluster stops if the Machine or its Cluster is paused.
func (c *Controller) readCluster(ctx context.Context, s *scope) error {
	cluster := &clusterv1.Cluster{}
	err := c.Client.Get(ctx, clusterKey(s.Object), cluster)
	switch {
	case apierrors.IsNotFound(err):
		s.cluster = gone
		return nil
	case err != nil:
		return err
	case annotations.IsPaused(cluster, s.Object):
		return reconcile.Stop
	case !cluster.DeletionTimestamp.IsZero():
		s.cluster = terminating
	}
	return nil
}

func clusterKey(m *clusterv1.Machine) ctrlclient.ObjectKey {
	return ctrlclient.ObjectKey{Namespace: m.Namespace, Name: m.Spec.ClusterName}
}

// listReleases lists the releases that are uninstalled before the Cluster is deleted.
func (c *Controller) listReleases(ctx context.Context, s *scope) error {
	all, err := index.Releases{Reader: c.Client, Indexed: c.Indexed}.OfCluster(ctx, clusterKey(s.Object))
	for i := range all {
		if uninstallsFirst(&all[i]) && index.Effective(&all[i]) {
			s.releases = append(s.releases, all[i])
		}
	}
	return err
}

func uninstallsFirst(r *addonsv1.HelmReleaseProxy) bool {
	return r.Spec.Options.Uninstall != nil && r.Spec.Options.Uninstall.BeforeCluster
}

// uninstall deletes releases of a Cluster that is being deleted, including those without a
// HelmChartProxy, which no other controller deletes.
func (c *Controller) uninstall(ctx context.Context, s *scope) error {
	if s.cluster != terminating {
		return nil
	}
	for i := range s.releases {
		r := &s.releases[i]
		if !r.DeletionTimestamp.IsZero() || annotations.HasPaused(r) {
			continue
		}
		err := c.Client.Delete(ctx, r.DeepCopy(), ctrlclient.Preconditions{UID: &r.UID})
		if ctrlclient.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting HelmReleaseProxy %q: %w", r.Name, err)
		}
	}
	return nil
}

// updateHook adds or removes the hook. Close writes it.
func (c *Controller) updateHook(ctx context.Context, s *scope) error {
	_, hooked := s.Object.Annotations[Hook]
	a := decide(facts{cluster: s.cluster, deleting: s.Deleting(), releases: len(s.releases), hooked: hooked})
	switch a {
	case addHook:
		if s.Object.Annotations == nil {
			s.Object.Annotations = map[string]string{}
		}
		s.Object.Annotations[Hook] = ""
	case removeHook:
		delete(s.Object.Annotations, Hook)
	default:
		return nil
	}
	ctrl.LoggerFrom(ctx).Info("Updating the deletion hook of a machine", "machine", s.Object.Name, "hooked", a == addHook)
	return nil
}
