package cluster

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// Reasons of events.
const (
	createdReason = "Created"
	changedReason = "Changed"
	removedReason = "Removed"
	deletedReason = "Deleted"
	failedReason  = "Failed"
	foreignReason = "NotOurs"

	addOnsSkippedReason = "AddOnsSkipped"
)

// event records what was done to an object. The reason is the verb.
func (c *Controller) event(s *scope, reason, kind, name string) {
	c.Events.Eventf(s.cluster, corev1.EventTypeNormal, reason, "%s %s %q", reason, kind, name)
}

func (c *Controller) eventForeign(s *scope, kind, name string) {
	c.Events.Eventf(s.cluster, corev1.EventTypeWarning, foreignReason, "Left %s %q unchanged because it does not belong to the cluster; delete it to let Drover create it", kind, name)
}

// eventStatus records conditions that became True, and a new failure.
func (c *Controller) eventStatus(before, after *anywherev1.Cluster) {
	was, is := before.Status, after.Status
	if is.FailureMessage != nil && (was.FailureMessage == nil || *was.FailureMessage != *is.FailureMessage) {
		c.Events.Event(after, corev1.EventTypeWarning, failedReason, *is.FailureMessage)
	}
	c.eventReservation(before, after)
	c.eventAddOns(before, after)
	for _, kind := range []string{anywherev1.EtcdReady, anywherev1.ControlPlaneInitialized, anywherev1.ControlPlaneReady, anywherev1.DefaultCNIConfigured, anywherev1.WorkersReady, anywherev1.SecretsEncrypted, anywherev1.KubernetesUpgraded, anywherev1.Ready} {
		if meta.IsStatusConditionTrue(is.Conditions, kind) && !meta.IsStatusConditionTrue(was.Conditions, kind) {
			c.Events.Eventf(after, corev1.EventTypeNormal, kind, "%s became %s", kind, metav1.ConditionTrue)
		}
	}
}

// eventReservation records that a Cluster starts to wait for machines, and that it no longer does.
func (c *Controller) eventReservation(before, after *anywherev1.Cluster) {
	was, is := meta.FindStatusCondition(before.Status.Conditions, anywherev1.CapacityReserved), meta.FindStatusCondition(after.Status.Conditions, anywherev1.CapacityReserved)
	switch {
	case is != nil && (was == nil || was.Reason != is.Reason):
		c.Events.Event(after, corev1.EventTypeWarning, is.Reason, is.Message)
	case is == nil && was != nil && after.Status.FailureReason == nil:
		c.Events.Event(after, corev1.EventTypeNormal, anywherev1.CapacityReserved, "Reserved the machines of the cluster")
	}
}

// eventAddOns records that an upgrade starts to wait for add-ons, and that it takes too long.
func (c *Controller) eventAddOns(before, after *anywherev1.Cluster) {
	was, is := meta.FindStatusCondition(before.Status.Conditions, anywherev1.KubernetesUpgraded), meta.FindStatusCondition(after.Status.Conditions, anywherev1.KubernetesUpgraded)
	if is == nil || was != nil && was.Reason == is.Reason {
		return
	}
	switch is.Reason {
	case anywherev1.WaitingForAddOnsReason:
		c.Events.Event(after, corev1.EventTypeNormal, is.Reason, is.Message)
	case anywherev1.AddOnsTimedOutReason:
		c.Events.Event(after, corev1.EventTypeWarning, is.Reason, is.Message)
	}
}

// metadataOf returns an empty PartialObjectMetadata of the kind of an object.
func metadataOf(o client.Object, scheme *runtime.Scheme) (*metav1.PartialObjectMetadata, error) {
	kind, err := apiutil.GVKForObject(o, scheme)
	if err != nil {
		return nil, err
	}
	out := &metav1.PartialObjectMetadata{}
	out.SetGroupVersionKind(kind)
	return out, nil
}

// kindOf returns the kind of an object.
func kindOf(o client.Object, scheme *runtime.Scheme) string {
	kind, err := apiutil.GVKForObject(o, scheme)
	if err != nil {
		return "object"
	}
	return kind.Kind
}
