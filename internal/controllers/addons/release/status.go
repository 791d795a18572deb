package release

import (
	"context"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/workload/tool"
)

// report turns the facts of this reconcile into status.
func (v *visit) report(f facts, c choice) {
	r := v.release
	switch {
	case f.rival != "":
		r.Status.Status, r.Status.Revision = "", 0 // what is there is the other's
	case f.cluster == nil:
		r.Status.Status, r.Status.Revision = f.state.Status, f.state.Revision
	}
	conditions.Set(r, clusterCondition(f))
	if ready := releaseCondition(f, c); ready != nil {
		conditions.Set(r, *ready)
	}
	optional(r, exclusiveCondition(f), addonsv1.ReleaseExclusive)
	optional(r, syncCondition(f), addonsv1.ReleaseInSync)
	summarize(r)
	r.Status.ObservedGeneration = r.Generation
	if f.settled() && f.state.Status == tool.Deployed {
		setAnnotation(r, addonsv1.InstalledAnnotation)
	}
}

func clusterCondition(f facts) metav1.Condition {
	p := f.cluster
	if p == nil && f.pack != nil && ofCluster(f.pack.reason) {
		p = f.pack
	}
	if p == nil {
		return condition(addonsv1.ClusterAvailable, metav1.ConditionTrue, addonsv1.AvailableReason, "")
	}
	return condition(addonsv1.ClusterAvailable, metav1.ConditionFalse, p.reason, p.message)
}

// ofCluster says which reasons are told with the cluster, although they are about a registry: that is where they have always been.
func ofCluster(reason string) bool {
	return reason == addonsv1.GetCredentialsFailedReason || reason == addonsv1.GetCACertificateFailedReason
}

// releaseCondition is HelmReleaseReady, nil if there is nothing new to say: a cluster that does not answer says nothing about a release
// that was ready.
func releaseCondition(f facts, c choice) *metav1.Condition {
	switch {
	case !f.deleting.IsZero():
		return removalCondition(f)
	case c.wait != nil && c.wait != f.cluster:
		return say(metav1.ConditionFalse, c.wait.reason, c.wait.message)
	case f.cluster != nil && f.status.Applied != nil:
		return nil
	case f.cluster != nil:
		return say(metav1.ConditionFalse, preparing, "Waiting for the cluster to become available")
	case f.once() && f.installed:
		return say(metav1.ConditionTrue, addonsv1.ReadyReason, "")
	case f.settled():
		return settledCondition(f)
	default:
		return underwayCondition(f)
	}
}

func removalCondition(f facts) *metav1.Condition {
	if a := f.status.Attempt; a != nil && a.Fingerprint == f.subject() {
		return say(metav1.ConditionFalse, addonsv1.ReleaseDeletionFailedReason, a.Message)
	}
	return say(metav1.ConditionFalse, addonsv1.ReleaseDeletedReason, "Uninstalling the release")
}

func underwayCondition(f facts) *metav1.Condition {
	switch a := f.status.Attempt; {
	case a != nil && a.Fingerprint == f.fingerprint:
		return say(metav1.ConditionFalse, addonsv1.InstallOrUpgradeFailedReason, a.Message)
	case f.state.Found && f.state.Status != tool.PendingInstall:
		return say(metav1.ConditionFalse, addonsv1.PendingReason, "Upgrading the release")
	default:
		return say(metav1.ConditionFalse, preparing, "Installing the release")
	}
}

func say(status metav1.ConditionStatus, reason, message string) *metav1.Condition {
	c := condition(addonsv1.ReleaseReady, status, reason, message)
	return &c
}

// unseen is told of objects that were not looked at yet.
const unseen = "Checking readiness of the objects"

func settledCondition(f facts) *metav1.Condition {
	health := f.known.health
	switch {
	case !f.watchesHealth(), health != nil && health.Ready:
		return say(metav1.ConditionTrue, addonsv1.ReadyReason, "")
	case health == nil && f.ready():
		return nil
	case health == nil:
		return say(metav1.ConditionFalse, addonsv1.PendingReason, unseen)
	case health.Failed, f.overdue() <= 0:
		return say(metav1.ConditionFalse, addonsv1.InstallOrUpgradeFailedReason, bound(health.Message))
	default:
		return say(metav1.ConditionFalse, addonsv1.PendingReason, bound(health.Message))
	}
}

func exclusiveCondition(f facts) *metav1.Condition {
	if f.contested == "" {
		return nil
	}
	message := fmt.Sprintf("HelmReleaseProxy %q claims the same release and is ignored", f.contested)
	if f.rival != "" {
		message = fmt.Sprintf("HelmReleaseProxy %q already manages this release", f.rival)
	}
	c := condition(addonsv1.ReleaseExclusive, metav1.ConditionFalse, addonsv1.ReleaseClaimedReason, message)
	return &c
}

func syncCondition(f facts) *metav1.Condition {
	if !f.watchesDrift() || !f.settled() || f.known.drift == nil {
		return nil
	}
	c := condition(addonsv1.ReleaseInSync, metav1.ConditionTrue, addonsv1.InSyncReason, "")
	if drift := *f.known.drift; len(drift) > 0 {
		c = condition(addonsv1.ReleaseInSync, metav1.ConditionFalse, addonsv1.DriftedReason, "Found drift in "+few(objects(drift)))
	}
	return &c
}

// optional sets a condition that is there in some cases only.
func optional(r *addonsv1.HelmReleaseProxy, c *metav1.Condition, name string) {
	if c == nil {
		conditions.Delete(r, name)
		return
	}
	conditions.Set(r, *c)
}

// summarize makes Ready out of the two conditions that decide it.
func summarize(r *addonsv1.HelmReleaseProxy) {
	if conditions.Get(r, addonsv1.ReleaseReady) == nil {
		conditions.Set(r, condition(addonsv1.ReleaseReady, metav1.ConditionUnknown, preparing, "Waiting for the first reconciliation"))
	}
	// It fails for unknown options only.
	_ = conditions.SetSummaryCondition(r, r, clusterv1.ReadyCondition,
		conditions.ForConditionTypes{addonsv1.ClusterAvailable, addonsv1.ReleaseReady})
}

func condition(name string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: name, Status: status, Reason: reason, Message: message}
}

// write writes what changed: nothing, the status, or both parts.
func (v *visit) write(ctx context.Context) error {
	if err := v.writeObject(ctx); err != nil {
		return client.IgnoreNotFound(err)
	}
	if reflect.DeepEqual(v.before.Status, v.release.Status) {
		return nil
	}
	if err := v.Client.Status().Patch(ctx, v.release, client.MergeFrom(v.before)); err != nil {
		return client.IgnoreNotFound(err)
	}
	v.writes.Note(v.release)
	return nil
}
