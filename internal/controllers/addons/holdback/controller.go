// Package holdback lets add-ons be uninstalled before their cluster goes. Where a HelmReleaseProxy asks for that, every Machine of the
// cluster gets a hook that Cluster API waits for before it takes the machine away. It comes off at once when a Machine goes for another
// reason, and when the Cluster goes, as soon as no such HelmReleaseProxy is left.
//
//	Cluster       Machine       such releases    hook
//	stays         stays         some             put on
//	stays         stays         none             taken off
//	stays, gone   any           any              taken off, if the Machine goes
//	goes          any           some             left as it is, and the releases are deleted
//	goes          any           none             taken off
//
// It uninstalls nothing itself. Start with Reconcile; the table is in decide.go.
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

// Hook is the annotation that Cluster API waits for. It is not the one before draining: that is waited for only when a node is drained, and
// with a Cluster no node is.
const Hook = clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/drover-addons"

// Controller reconciles Machines.
type Controller struct {
	// Client reads from the manager's cache.
	Client ctrlclient.Client
	// Indexed says that the cache has the indexes of package index.
	Indexed bool
	// WatchFilter limits the controller to Machines with this value of the watch label; empty means all.
	WatchFilter string
}

// Reconcile puts the hook onto a Machine, or takes it off.
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
	f := facts{cluster: stays, leaving: !machine.DeletionTimestamp.IsZero(), releases: len(releases)}
	_, f.hooked = machine.Annotations[Hook]
	switch {
	case cluster == nil:
		f.cluster = gone
	case !cluster.DeletionTimestamp.IsZero():
		f.cluster = goes
		if err := c.uninstall(ctx, releases); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, c.do(ctx, machine, decide(f))
}

// clusterOf is nil if the Cluster is gone.
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

// uninstalledFirst are the releases on the Machine's cluster that go before it does.
func (c *Controller) uninstalledFirst(ctx context.Context, m *clusterv1.Machine) ([]addonsv1.HelmReleaseProxy, error) {
	all, err := index.Releases{Reader: c.Client, Indexed: c.Indexed}.OfCluster(ctx, clusterKey(m))
	if err != nil {
		return nil, err
	}
	var out []addonsv1.HelmReleaseProxy
	for i := range all {
		if asks(&all[i]) {
			out = append(out, all[i])
		}
	}
	return out, nil
}

func asks(r *addonsv1.HelmReleaseProxy) bool {
	return r.Spec.Options.Uninstall != nil && r.Spec.Options.Uninstall.BeforeCluster
}

// uninstall deletes releases, also those made by hand, which nobody else would.
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

func (c *Controller) do(ctx context.Context, m *clusterv1.Machine, a action) error {
	before := m.DeepCopy()
	switch a {
	case putOn:
		if m.Annotations == nil {
			m.Annotations = map[string]string{}
		}
		m.Annotations[Hook] = ""
	case takeOff:
		delete(m.Annotations, Hook)
	default:
		return nil
	}
	err := c.Client.Patch(ctx, m, ctrlclient.MergeFrom(before))
	if ctrlclient.IgnoreNotFound(err) != nil {
		return fmt.Errorf("updating the deletion hook of machine %q: %w", m.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("Updated the deletion hook of a machine", "machine", m.Name, "hooked", a == putOn)
	return nil
}
