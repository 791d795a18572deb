package release

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/index"
	"github.com/drover-dev/drover/internal/workload"
	"github.com/drover-dev/drover/internal/workload/tool"
)

const preparing = addonsv1.PreparingReason

// gather gathers everything that the choice depends on. It makes no request to a cluster, a
// registry or a repository.
func (v *visit) gather(ctx context.Context) error {
	f := facts{now: v.Clock.Now(), spec: &v.release.Spec, status: &v.release.Status}
	v.gatherAges(&f)
	_, f.installed = v.release.Annotations[addonsv1.InstalledAnnotation]
	if err := v.gatherPermission(ctx, &f); err != nil {
		return err
	}
	permitted := f.clusterProblem == nil
	if permitted {
		v.gatherCluster(ctx, &f)
		v.gatherClaims(ctx, &f)
	}
	switch {
	case !f.deleting.IsZero():
		f.want = tool.Want{ID: v.id(), Options: v.release.Spec.Options}
	case permitted:
		v.gatherDependencies(ctx, &f)
		v.gatherWant(ctx, &f)
	}
	f.known.resolveEvery = v.resolutions.every
	f.running, f.since = v.operations.Running(v.key())
	if decide(f).do == apply {
		f.packageProblem = v.resolutions.fetch(f.want.Package, f.want.Resolved, v.key())
	}
	v.facts = f
	return nil
}

// gatherAges measures what must not happen too early.
func (v *visit) gatherAges(f *facts) {
	if v.deleting() {
		f.deleting = v.release.DeletionTimestamp.Time
		f.deletingFor = v.memory.deletions.Known(v.Clock, v.key(), f.deleting)
	}
	if a := f.status.Applied; a != nil && a.At != nil && f.watchesHealth() {
		f.appliedFor = v.memory.applied.Of(v.Clock, v.key(), a.At.Time)
	}
}

// gatherCluster reads the Cluster, the connection to it, and what the connection's watches know of
// the release.
func (v *visit) gatherCluster(ctx context.Context, f *facts) {
	cluster := &clusterv1.Cluster{}
	err := v.Client.Get(ctx, v.cluster(), cluster, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err):
		v.Clusters.Forget(v.cluster())
		f.clusterGone = true
		f.clusterProblem = &problem{reason: addonsv1.GetClusterFailedReason, message: fmt.Sprintf("Cluster %q not found", v.cluster())}
		return
	case err != nil:
		f.clusterProblem = &problem{reason: addonsv1.GetClusterFailedReason, message: message(err), after: firstRetry}
		return
	}
	f.paused = isPaused(cluster)
	f.initialized = ptr.Deref(cluster.Status.Initialization.ControlPlaneInitialized, true)
	if !f.initialized {
		f.clusterProblem = &problem{reason: addonsv1.NotAvailableReason, message: fmt.Sprintf("Waiting for the control plane of cluster %q to be initialized", v.cluster())}
		return
	}
	connection, err := v.Clusters.Get(ctx, v.cluster())
	if err != nil {
		f.clusterProblem = v.unavailable(err)
		return
	}
	if f.state, err = v.tool.Observe(connection, v.id()); err != nil {
		f.clusterProblem = &problem{reason: addonsv1.NotAvailableReason, message: fmt.Sprintf("Waiting for the watches of cluster %q to sync", v.cluster())}
		return
	}
	f.state = v.memory.expected(v.key(), f.state, f.now)
	f.known = v.memory.get(v.key(), f.state.Stamp, connection)
}

func isPaused(cluster *clusterv1.Cluster) bool {
	return ptr.Deref(cluster.Spec.Paused, false) || annotations.HasPaused(cluster)
}

// unavailable describes a missing connection. A new one causes an event, except for an unreachable
// cluster.
func (v *visit) unavailable(err error) *problem {
	silent := &workload.UnreachableError{}
	switch {
	case errors.As(err, &silent):
		// Without the time of the next attempt, which would change the message each time.
		return &problem{
			reason:  addonsv1.NotAvailableReason,
			message: fmt.Sprintf("Cluster %q is unreachable: %v", v.cluster(), silent.Cause),
			after:   max(silent.Until.Sub(v.Clock.Now()), checkEvery),
		}
	case errors.Is(err, clustercache.ErrClusterNotConnected):
		return &problem{reason: addonsv1.NotAvailableReason, message: fmt.Sprintf("Not connected to cluster %q", v.cluster())}
	default:
		return &problem{reason: addonsv1.GetKubeconfigFailedReason, message: message(err), after: firstRetry}
	}
}

// gatherClaims finds other HelmReleaseProxies with the same release on the same cluster. The older
// one owns it.
func (v *visit) gatherClaims(ctx context.Context, f *facts) {
	others := &addonsv1.HelmReleaseProxyList{}
	if err := v.Client.List(ctx, others, client.MatchingFields{byRelease: releaseKey(v.release)}, client.UnsafeDisableDeepCopy); err != nil {
		f.clusterProblem = &problem{reason: addonsv1.GetFailedReason, message: message(err), after: firstRetry}
		return
	}
	for i := range others.Items {
		other := &others.Items[i]
		if other.UID == v.release.UID || !index.Effective(other) {
			continue
		}
		name := v.nameOf(other)
		if f.claimant == "" || name < f.claimant {
			f.claimant = name
		}
		if (older(other, v.release) || !index.Effective(v.release)) && (f.owner == "" || name < f.owner) {
			f.owner = name
		}
	}
}

// nameOf returns the name of another release for messages. Those of other namespaces stay private.
func (v *visit) nameOf(other *addonsv1.HelmReleaseProxy) string {
	if other.Namespace != v.release.Namespace {
		return elsewhere
	}
	return client.ObjectKeyFromObject(other).String()
}

// elsewhere stands for a release in another namespace.
const elsewhere = "in another namespace"

// older decides who owns a release: the one that applied it, then the older one, then the first by
// name.
func older(a, b *addonsv1.HelmReleaseProxy) bool {
	if hasA, hasB := a.Status.Applied != nil, b.Status.Applied != nil; hasA != hasB {
		return hasA
	}
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return client.ObjectKeyFromObject(a).String() < client.ObjectKeyFromObject(b).String()
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}

// gatherDependencies finds the add-ons that this one waits for. A release that is deployed does not
// wait for a dependency that is being changed, which would hold up both.
func (v *visit) gatherDependencies(ctx context.Context, f *facts) {
	if len(v.release.Spec.DependsOn) == 0 {
		return
	}
	siblings := &addonsv1.HelmReleaseProxyList{}
	err := v.Client.List(ctx, siblings, client.InNamespace(v.release.Namespace), client.MatchingFields{byCluster: v.cluster().String()},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		f.clusterProblem = &problem{reason: addonsv1.GetFailedReason, message: message(err), after: firstRetry}
		return
	}
	for _, name := range v.release.Spec.DependsOn {
		ready := slices.ContainsFunc(siblings.Items, func(s addonsv1.HelmReleaseProxy) bool {
			return s.Labels[addonsv1.HelmChartProxyLabel] == name && s.DeletionTimestamp.IsZero() && upToDate(&s)
		})
		if !ready {
			f.waitingFor = append(f.waitingFor, name)
		}
	}
	slices.Sort(f.waitingFor)
}

func upToDate(r *addonsv1.HelmReleaseProxy) bool {
	return r.Status.ObservedGeneration == r.Generation && conditions.IsTrue(r, clusterv1.ReadyCondition)
}
