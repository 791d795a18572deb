package active

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

// tell makes events of what people wait for.
func (v *visit) tell() {
	was, is := &v.before.Status, &v.object.Status
	if is.State != was.State && is.State != "" && is.State != packagesv1.ControllerIgnored {
		kind := corev1.EventTypeNormal
		if is.State == packagesv1.ControllerDisconnected {
			kind = corev1.EventTypeWarning
		}
		v.Events.Eventf(v.object, kind, eventReason(is.State), "State is %q: %s", is.State, orNothing(is.Detail))
	}
	for _, kind := range []string{packagesv1.BundleActive, packagesv1.RegistryReachable, packagesv1.CredentialsSynced} {
		a, b := meta.FindStatusCondition(was.Conditions, kind), meta.FindStatusCondition(is.Conditions, kind)
		if b != nil && b.Status == metav1.ConditionFalse && !v.expected(b) && (a == nil || a.Status != b.Status || a.Reason != b.Reason) {
			v.Events.Event(v.object, corev1.EventTypeWarning, b.Reason, b.Message)
		}
	}
}

// expected says that a condition is what is to be expected on the way.
func (v *visit) expected(c *metav1.Condition) bool {
	return c.Reason == packagesv1.SyncPendingReason || c.Reason == packagesv1.NotPresentReason && v.object.Spec.ActiveBundle == ""
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

func orNothing(detail string) string {
	if detail == "" {
		return "all is well"
	}
	return detail
}
