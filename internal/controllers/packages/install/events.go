package install

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

// Reasons of events.
const (
	installedReason      = "PackageInstalled"
	updatingReason       = "PackageUpdateStarted"
	failedReason         = "PackageFailed"
	blockedReason        = "PackageBlocked"
	uninstalledReason    = "PackageUninstalled"
	abandonedReason      = "PackageAbandoned"
	dependencyMadeReason = "DependencyMade"
)

// tell makes events of what changed in the status.
func (c *Controller) tell(s *scope) {
	was, is := &s.before.Status, &s.pack.Status
	if is.State != was.State || is.CurrentVersion != was.CurrentVersion {
		switch is.State {
		case packagesv1.StateInstalled:
			c.Events.Eventf(s.pack, corev1.EventTypeNormal, installedReason, "Installed version %s", is.CurrentVersion)
		case packagesv1.StateUpdating:
			c.Events.Eventf(s.pack, corev1.EventTypeNormal, updatingReason, "Began to update from version %s to %s", was.CurrentVersion, is.Source.Version)
		}
	}
	for name, reason := range map[string]string{
		packagesv1.TargetFound: blockedReason, packagesv1.SourceFound: blockedReason, packagesv1.Installed: failedReason,
	} {
		if message := newProblem(was, is, name); message != "" {
			c.Events.Event(s.pack, corev1.EventTypeWarning, reason, message)
		}
	}
}

// newProblem is what a condition says is wrong, if it did not say so before. That something is under way is nothing wrong.
func newProblem(was, is *packagesv1.PackageStatus, name string) string {
	a, b := meta.FindStatusCondition(was.Conditions, name), meta.FindStatusCondition(is.Conditions, name)
	if b == nil || b.Status != metav1.ConditionFalse || a != nil && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message {
		return ""
	}
	if name == packagesv1.Installed && b.Reason != packagesv1.InstallFailedReason {
		return ""
	}
	return b.Message
}
