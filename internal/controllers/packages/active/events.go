package active

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

// recordEvents records events for the changes since the last status.
func (v *visit) recordEvents(was *packagesv1.PackageBundleControllerStatus) {
	is := &v.Object.Status
	if is.State != was.State && is.State != "" && is.State != packagesv1.ControllerIgnored {
		kind := corev1.EventTypeNormal
		if is.State == packagesv1.ControllerDisconnected {
			kind = corev1.EventTypeWarning
		}
		v.Events.Eventf(v.Object, kind, eventReason(is.State), "State changed to %q: %s", is.State, cmp.Or(is.Detail, "no problems"))
	}
	for _, kind := range []string{packagesv1.BundleActive, packagesv1.RegistryReachable, packagesv1.CredentialsSynced} {
		a, b := meta.FindStatusCondition(was.Conditions, kind), meta.FindStatusCondition(is.Conditions, kind)
		if b != nil && b.Status == metav1.ConditionFalse && !v.expected(b) && (a == nil || a.Status != b.Status || a.Reason != b.Reason) {
			v.Events.Event(v.Object, corev1.EventTypeWarning, b.Reason, b.Message)
		}
	}
}

// expected reports whether a False condition is part of normal progress.
func (v *visit) expected(c *metav1.Condition) bool {
	return c.Reason == packagesv1.SyncPendingReason || c.Reason == packagesv1.NotPresentReason && v.Object.Spec.ActiveBundle == ""
}

func eventReason(s packagesv1.BundleControllerStateEnum) string {
	switch s {
	case packagesv1.ControllerDisconnected:
		return "Disconnected"
	case packagesv1.ControllerUpgradeAvailable:
		return "UpgradeAvailable"
	default:
		return "Active"
	}
}
