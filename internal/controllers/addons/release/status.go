package release

import (
	"context"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/workload/tool"
)

// report computes the status from the facts and writes it.
func (v *visit) report(ctx context.Context) error {
	setStatus(v.release, v.facts, v.choice)
	return v.write(ctx)
}

// setStatus computes the status from facts and nothing else.
func setStatus(r *addonsv1.HelmReleaseProxy, f facts, c choice) {
	switch {
	case f.owner != "":
		r.Status.Status, r.Status.Revision = "", 0 // the release belongs to the owner
	case f.clusterProblem == nil:
		r.Status.Status, r.Status.Revision = f.state.Status, f.state.Revision
	}
	conditions.Set(r, clusterCondition(f))
	if ready := releaseCondition(f, c); ready != nil {
		conditions.Set(r, *ready)
	}
	setOrDelete(r, exclusiveCondition(f), addonsv1.ReleaseExclusive)
	setOrDelete(r, syncCondition(f), addonsv1.ReleaseInSync)
	summarize(r)
	r.Status.ObservedGeneration = r.Generation
	if f.settled() && f.state.Status == tool.Deployed {
		setAnnotation(r, addonsv1.InstalledAnnotation)
	}
}

func clusterCondition(f facts) metav1.Condition {
	p := f.clusterProblem
	if p == nil && f.packageProblem != nil && ofCluster(f.packageProblem.reason) {
		p = f.packageProblem
	}
	if p == nil {
		return condition(addonsv1.ClusterAvailable, metav1.ConditionTrue, addonsv1.AvailableReason, "")
	}
	return condition(addonsv1.ClusterAvailable, metav1.ConditionFalse, p.reason, p.message)
}

// ofCluster returns the reasons that ClusterAvailable reports although they are about a registry,
// for compatibility.
func ofCluster(reason string) bool {
	return reason == addonsv1.GetCredentialsFailedReason || reason == addonsv1.GetCACertificateFailedReason
}

// releaseCondition is HelmReleaseReady, or nil to keep it: an unreachable cluster says nothing
// about a release that was ready.
func releaseCondition(f facts, c choice) *metav1.Condition {
	switch {
	case !f.deleting.IsZero():
		return removalCondition(f)
	case c.wait != nil && c.wait != f.clusterProblem:
		return releaseReady(metav1.ConditionFalse, c.wait.reason, c.wait.message)
	case f.clusterProblem != nil && f.status.Applied != nil:
		return nil
	case f.clusterProblem != nil:
		return releaseReady(metav1.ConditionFalse, preparing, "Waiting for the cluster to become available")
	case f.installOnce() && f.installed:
		return releaseReady(metav1.ConditionTrue, addonsv1.ReadyReason, "")
	case f.settled():
		return settledCondition(f)
	default:
		return progressCondition(f)
	}
}

func removalCondition(f facts) *metav1.Condition {
	if a := f.status.Attempt; a != nil && a.Fingerprint == f.subject() {
		return releaseReady(metav1.ConditionFalse, addonsv1.ReleaseDeletionFailedReason, text.Sentence(a.Message))
	}
	return releaseReady(metav1.ConditionFalse, addonsv1.ReleaseDeletedReason, "Uninstalling the release")
}

func progressCondition(f facts) *metav1.Condition {
	switch a := f.status.Attempt; {
	case a != nil && a.Fingerprint == f.fingerprint:
		return releaseReady(metav1.ConditionFalse, addonsv1.InstallOrUpgradeFailedReason, text.Sentence(a.Message))
	case f.state.Found && f.state.Status != tool.PendingInstall:
		return releaseReady(metav1.ConditionFalse, addonsv1.PendingReason, "Upgrading the release")
	default:
		return releaseReady(metav1.ConditionFalse, preparing, "Installing the release")
	}
}

func releaseReady(status metav1.ConditionStatus, reason, message string) *metav1.Condition {
	c := condition(addonsv1.ReleaseReady, status, reason, message)
	return &c
}

// checkingReadiness is the message until the objects were checked.
const checkingReadiness = "Checking readiness of the objects"

func settledCondition(f facts) *metav1.Condition {
	health := f.known.health
	switch {
	case !f.watchesHealth(), health != nil && health.Ready:
		return releaseReady(metav1.ConditionTrue, addonsv1.ReadyReason, "")
	case health == nil && f.ready():
		return nil
	case health == nil:
		return releaseReady(metav1.ConditionFalse, addonsv1.PendingReason, checkingReadiness)
	case health.Failed, f.timeLeft() <= 0:
		return releaseReady(metav1.ConditionFalse, addonsv1.InstallOrUpgradeFailedReason, text.Truncate(text.Sentence(health.Message)))
	default:
		return releaseReady(metav1.ConditionFalse, addonsv1.PendingReason, text.Truncate(text.Sentence(health.Message)))
	}
}

// setUnchecked reports that the readiness of a new revision is unknown, whatever the previous one
// was.
func setUnchecked(r *addonsv1.HelmReleaseProxy) {
	conditions.Set(r, *releaseReady(metav1.ConditionFalse, addonsv1.PendingReason, checkingReadiness))
}

func exclusiveCondition(f facts) *metav1.Condition {
	if f.claimant == "" {
		return nil
	}
	message := "HelmReleaseProxy " + quoted(f.claimant) + " claims the same release and is ignored"
	if f.owner != "" {
		message = "HelmReleaseProxy " + quoted(f.owner) + " already manages this release"
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
		c = condition(addonsv1.ReleaseInSync, metav1.ConditionFalse, addonsv1.DriftedReason, "Found drift in "+text.FirstN(objects(drift), maxNamed))
	}
	return &c
}

// setOrDelete sets a condition that is not always present.
func setOrDelete(r *addonsv1.HelmReleaseProxy, c *metav1.Condition, name string) {
	if c == nil {
		conditions.Delete(r, name)
		return
	}
	conditions.Set(r, *c)
}

// summarize computes Ready from the two conditions that decide it.
func summarize(r *addonsv1.HelmReleaseProxy) {
	if conditions.Get(r, addonsv1.ReleaseReady) == nil {
		conditions.Set(r, condition(addonsv1.ReleaseReady, metav1.ConditionUnknown, preparing, "Waiting for the first reconciliation"))
	}
	// It fails only for unknown options.
	_ = conditions.SetSummaryCondition(r, r, clusterv1.ReadyCondition,
		conditions.ForConditionTypes{addonsv1.ClusterAvailable, addonsv1.ReleaseReady})
}

func condition(name string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: name, Status: status, Reason: reason, Message: message}
}

// write writes what changed: nothing, the status, or the object and the status.
func (v *visit) write(ctx context.Context) error {
	if err := v.writeObject(ctx); err != nil {
		return client.IgnoreNotFound(err)
	}
	if reflect.DeepEqual(v.before.Status, v.release.Status) {
		return nil
	}
	return client.IgnoreNotFound(v.Client.Status().Patch(ctx, v.release, client.MergeFrom(v.before)))
}
