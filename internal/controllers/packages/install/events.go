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

// recordEvents records events for changes of the status.
func (c *Controller) recordEvents(s *scope) {
	was, is := s.last, &s.pack.Status
	if is.State != was.State || is.CurrentVersion != was.CurrentVersion {
		switch is.State {
		case packagesv1.StateInstalled:
			c.Events.Eventf(s.pack, corev1.EventTypeNormal, installedReason, "Installed version %s", is.CurrentVersion)
		case packagesv1.StateUpdating:
			c.Events.Eventf(s.pack, corev1.EventTypeNormal, updatingReason, "Updating from version %s to %s", was.CurrentVersion, is.Source.Version)
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

// newProblem returns the message of a condition that became False. Normal progress is not a
// problem.
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

// recordRemoval records what became of the release of a deleted Package.
func (c *Controller) recordRemoval(f *facts) {
	t := f.pack.Status.Target
	switch {
	case t == nil:
		c.Events.Event(f.pack, corev1.EventTypeNormal, uninstalledReason, "Nothing was installed")
	case f.abandoned:
		c.Events.Eventf(f.pack, corev1.EventTypeWarning, abandonedReason,
			"Abandoned release %q in namespace %q because Cluster %q was unreachable", t.Release, t.Namespace, t.Cluster)
	default:
		c.Events.Eventf(f.pack, corev1.EventTypeNormal, uninstalledReason, "Uninstalled release %q from Cluster %q, or the Cluster was deleted", t.Release, t.Cluster)
	}
}
