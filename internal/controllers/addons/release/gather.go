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
	"github.com/drover-dev/drover/internal/workload"
	"github.com/drover-dev/drover/internal/workload/tool"
)

const preparing = addonsv1.PreparingReason

// gather finds out everything that the choice depends on. It makes no request to a cluster, a registry or a repository.
func (v *visit) gather(ctx context.Context) facts {
	f := facts{now: v.Clock.Now(), spec: &v.release.Spec, status: &v.release.Status}
	if v.deleting() {
		f.deleting = v.release.DeletionTimestamp.Time
	}
	_, f.installed = v.release.Annotations[addonsv1.InstalledAnnotation]
	v.gatherCluster(ctx, &f)
	v.gatherRivals(ctx, &f)
	if f.deleting.IsZero() {
		v.gatherDependencies(ctx, &f)
		v.gatherWant(ctx, &f)
	} else {
		f.want = tool.Want{ID: v.id(), Options: v.release.Spec.Options}
	}
	f.known.resolveEvery = v.resolutions.every
	f.running, f.since = v.operations.Running(v.key())
	if decide(f).do == apply {
		f.pack = v.resolutions.fetched(f.want.Package, f.want.Resolved, v.key())
	}
	return f
}

// gatherCluster looks at the Cluster, the connection to it, and what the connection's watches know of the release.
func (v *visit) gatherCluster(ctx context.Context, f *facts) {
	cluster := &clusterv1.Cluster{}
	err := v.Client.Get(ctx, v.cluster(), cluster, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err):
		v.Clusters.Forget(v.cluster())
		f.gone = true
		f.cluster = &problem{reason: addonsv1.GetClusterFailedReason, message: fmt.Sprintf("Cluster %q not found", v.cluster())}
		return
	case err != nil:
		f.cluster = &problem{reason: addonsv1.GetClusterFailedReason, message: err.Error(), after: firstRetry}
		return
	}
	f.held = isPaused(cluster)
	f.initialized = ptr.Deref(cluster.Status.Initialization.ControlPlaneInitialized, true)
	if !f.initialized {
		f.cluster = &problem{reason: addonsv1.NotAvailableReason, message: fmt.Sprintf("Waiting for the control plane of cluster %q to be initialized", v.cluster())}
		return
	}
	connection, err := v.Clusters.Get(ctx, v.cluster())
	if err != nil {
		f.cluster = v.unavailable(err)
		return
	}
	if f.state, err = v.tool.Observe(connection, v.id()); err != nil {
		f.cluster = &problem{reason: addonsv1.NotAvailableReason, message: fmt.Sprintf("Waiting for the watches of cluster %q to sync", v.cluster())}
		return
	}
	f.state = v.memory.expected(v.key(), f.state, f.now)
	f.known = v.memory.of(v.key(), f.state.Stamp, connection)
}

func isPaused(cluster *clusterv1.Cluster) bool {
	return ptr.Deref(cluster.Spec.Paused, false) || annotations.HasPaused(cluster)
}

// unavailable is why there is no connection. That there is one again is an event, but for a cluster that does not answer.
func (v *visit) unavailable(err error) *problem {
	silent := &workload.UnreachableError{}
	switch {
	case errors.As(err, &silent):
		// A message with a time in it would be a new one each time.
		return &problem{
			reason:  addonsv1.NotAvailableReason,
			message: fmt.Sprintf("Cluster %q is unreachable: %v", v.cluster(), silent.Cause),
			after:   max(silent.Until.Sub(v.Clock.Now()), checkEvery),
		}
	case errors.Is(err, clustercache.ErrClusterNotConnected):
		return &problem{reason: addonsv1.NotAvailableReason, message: fmt.Sprintf("Not connected to cluster %q", v.cluster())}
	default:
		return &problem{reason: addonsv1.GetKubeconfigFailedReason, message: bound(err.Error()), after: firstRetry}
	}
}

// gatherRivals finds others with the same release on the same cluster. The older one has it.
func (v *visit) gatherRivals(ctx context.Context, f *facts) {
	others := &addonsv1.HelmReleaseProxyList{}
	if err := v.Client.List(ctx, others, client.MatchingFields{byRelease: releaseKey(v.release)}, client.UnsafeDisableDeepCopy); err != nil {
		f.cluster = &problem{reason: addonsv1.GetFailedReason, message: err.Error(), after: firstRetry}
		return
	}
	for i := range others.Items {
		other := &others.Items[i]
		if other.UID == v.release.UID {
			continue
		}
		name := client.ObjectKeyFromObject(other).String()
		if f.contested == "" || name < f.contested {
			f.contested = name
		}
		if older(other, v.release) && (f.rival == "" || name < f.rival) {
			f.rival = name
		}
	}
}

// older decides who has a release: who has put it there, then who came first. Names break a tie.
func older(a, b *addonsv1.HelmReleaseProxy) bool {
	if hasA, hasB := a.Status.Applied != nil, b.Status.Applied != nil; hasA != hasB {
		return hasA
	}
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return client.ObjectKeyFromObject(a).String() < client.ObjectKeyFromObject(b).String()
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}

// gatherDependencies finds the add-ons that this one waits for. A release that is deployed already does not wait for a dependency that is
// being changed: that would hold up both.
func (v *visit) gatherDependencies(ctx context.Context, f *facts) {
	if len(v.release.Spec.DependsOn) == 0 {
		return
	}
	siblings := &addonsv1.HelmReleaseProxyList{}
	err := v.Client.List(ctx, siblings, client.InNamespace(v.release.Namespace), client.MatchingFields{byCluster: v.cluster().String()},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		f.cluster = &problem{reason: addonsv1.GetFailedReason, message: err.Error(), after: firstRetry}
		return
	}
	for _, name := range v.release.Spec.DependsOn {
		ready := slices.ContainsFunc(siblings.Items, func(s addonsv1.HelmReleaseProxy) bool {
			return s.Labels[addonsv1.HelmChartProxyLabel] == name && s.DeletionTimestamp.IsZero() && upToDate(&s)
		})
		if !ready {
			f.missing = append(f.missing, name)
		}
	}
	slices.Sort(f.missing)
}

func upToDate(r *addonsv1.HelmReleaseProxy) bool {
	return r.Status.ObservedGeneration == r.Generation && conditions.IsTrue(r, clusterv1.ReadyCondition)
}
