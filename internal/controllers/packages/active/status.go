package active

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// maxMessage bounds what is told in a condition.
const maxMessage = 1000

func bound(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + "…"
}

// report turns the facts of this reconcile into status. What an object says that is deleted stays as it was.
func (v *visit) report(f facts, c choice) {
	if !f.deleting.IsZero() {
		return
	}
	s := &v.object.Status
	s.State, s.Detail = c.state, c.detail
	s.Spec = f.spec.DeepCopy()
	s.ObservedGeneration = v.object.Generation
	if f.elsewhere {
		s.Conditions = nil
		v.set(&metav1.Condition{
			Type: packagesv1.Ready, Status: metav1.ConditionFalse, Reason: "Ignored",
			Message: "a PackageBundleController is looked at in namespace " + packagesv1.Namespace + " only",
		})
		return
	}
	s.KubernetesVersion = f.version
	if f.look.place == f.place && f.look.place != "" {
		s.LatestBundle = f.look.name
		if f.look.err == nil {
			s.LastCheck = &metav1.Time{Time: f.look.at.Truncate(1e9)}
		}
	}
	v.set(clusterCondition(f))
	v.set(registryCondition(f))
	v.set(bundleCondition(f))
	if credentials := credentialsCondition(f); credentials != nil {
		v.set(credentials)
	} else {
		meta.RemoveStatusCondition(&s.Conditions, packagesv1.CredentialsSynced)
	}
	v.summarize()
}

// set writes a condition, if there is anything new to say.
func (v *visit) set(c *metav1.Condition) {
	if c == nil {
		return
	}
	c.ObservedGeneration = v.object.Generation
	meta.SetStatusCondition(&v.object.Status.Conditions, *c)
}

func say(kind string, status metav1.ConditionStatus, reason, message string) *metav1.Condition {
	return &metav1.Condition{Type: kind, Status: status, Reason: reason, Message: bound(message)}
}

// clusterCondition is nil while an answer is waited for and another one still stands.
func clusterCondition(f facts) *metav1.Condition {
	switch {
	case f.unreachable != nil:
		return say(packagesv1.ClusterReachable, metav1.ConditionFalse, f.unreachable.reason, f.unreachable.message)
	case !f.unasked:
		return say(packagesv1.ClusterReachable, metav1.ConditionTrue, packagesv1.ReachableReason, "")
	case meta.FindStatusCondition(f.status.Conditions, packagesv1.ClusterReachable) != nil:
		return nil
	default:
		return say(packagesv1.ClusterReachable, metav1.ConditionUnknown, "Asking", fmt.Sprintf("Cluster %q is being asked for its version", f.cluster))
	}
}

func registryCondition(f facts) *metav1.Condition {
	switch {
	case f.place == "" || f.look.place != f.place:
		if f.place != "" && meta.FindStatusCondition(f.status.Conditions, packagesv1.RegistryReachable) != nil {
			return nil // it is being asked
		}
		return say(packagesv1.RegistryReachable, metav1.ConditionUnknown, "Waiting", "no bundle was looked for yet")
	case f.look.err == nil:
		return say(packagesv1.RegistryReachable, metav1.ConditionTrue, packagesv1.ReachableReason, "")
	}
	reason := packagesv1.UnreachableReason
	switch {
	case f.look.refused:
		reason = packagesv1.BundleRefusedReason
	case errors.Is(f.look.err, artifact.ErrNotFound):
		reason = packagesv1.NotPresentReason
	case errors.Is(f.look.err, artifact.ErrForbidden):
		reason = "AccessDenied"
	}
	return say(packagesv1.RegistryReachable, metav1.ConditionFalse, reason, f.look.err.Error())
}

func bundleCondition(f facts) *metav1.Condition {
	name := f.spec.ActiveBundle
	no := func(reason, message string) *metav1.Condition {
		return say(packagesv1.BundleActive, metav1.ConditionFalse, reason, message)
	}
	required := (*bundle.UpgradeRequiredError)(nil)
	switch {
	case name == "" && f.latestFault != nil:
		return no(packagesv1.NotPresentReason, fmt.Sprintf("no bundle is active: %q can't be used: %v", f.newest(), f.latestFault))
	case name == "":
		return no(packagesv1.NotPresentReason, "no bundle is active: the newest will be, once it is found")
	case f.active == nil:
		return no(packagesv1.NotPresentReason, notPresent(f))
	case errors.As(f.activeFault, &required):
		return no(packagesv1.UpgradeRequiredReason, f.activeFault.Error())
	case f.activeFault != nil:
		return no(packagesv1.BundleRefusedReason, fmt.Sprintf("bundle %q: %v", name, f.activeFault))
	}
	parsed, err := bundle.ParseName(name)
	if err != nil {
		return no(packagesv1.BundleRefusedReason, err.Error())
	}
	if f.version != "" && parsed.Kubernetes() != f.version {
		return no(packagesv1.VersionMismatchReason,
			fmt.Sprintf("bundle %q is for Kubernetes %s, and the cluster has %s: choose one that begins with v%s-",
				name, parsed.Kubernetes(), f.version, strings.ReplaceAll(f.version, ".", "-")))
	}
	return say(packagesv1.BundleActive, metav1.ConditionTrue, packagesv1.ActiveReason, "")
}

func credentialsCondition(f facts) *metav1.Condition {
	c := &f.credentials
	condition := func(status metav1.ConditionStatus, reason, message string) *metav1.Condition {
		return say(packagesv1.CredentialsSynced, status, reason, message)
	}
	switch {
	case !c.any():
		return nil
	case c.invalid != nil:
		return condition(metav1.ConditionFalse, packagesv1.SyncFailedReason, c.invalid.Error())
	case c.failed != nil:
		return condition(metav1.ConditionFalse, packagesv1.SyncFailedReason, c.failed.Error())
	case c.local() != leave:
		return condition(metav1.ConditionFalse, packagesv1.SyncPendingReason, "credentials are being made")
	case len(c.wanted()) > 0 && f.connected == nil:
		return condition(metav1.ConditionUnknown, packagesv1.SyncPendingReason, "the cluster does not answer")
	case c.unseen, !c.plan.empty():
		return condition(metav1.ConditionFalse, packagesv1.SyncPendingReason, "credentials are being copied to the cluster")
	default:
		return condition(metav1.ConditionTrue, packagesv1.SyncedReason, "")
	}
}

// summarize makes Ready out of all others: it has the first thing that is wrong.
func (v *visit) summarize() {
	ready := say(packagesv1.Ready, metav1.ConditionTrue, packagesv1.Ready, "")
	for _, kind := range []string{packagesv1.ClusterReachable, packagesv1.BundleActive, packagesv1.RegistryReachable, packagesv1.CredentialsSynced} {
		c := meta.FindStatusCondition(v.object.Status.Conditions, kind)
		if c == nil || c.Status == metav1.ConditionTrue {
			continue
		}
		if ready.Status == metav1.ConditionTrue || ready.Status == metav1.ConditionUnknown && c.Status == metav1.ConditionFalse {
			ready = say(packagesv1.Ready, c.Status, c.Reason, kind+": "+c.Message)
		}
	}
	v.set(ready)
}

func isTrue(conditions []metav1.Condition, kind string) bool {
	return meta.IsStatusConditionTrue(conditions, kind)
}

// write writes the status if it changed, and tells what did.
func (v *visit) write(ctx context.Context) error {
	if reflect.DeepEqual(v.before.Status, v.object.Status) {
		return nil
	}
	if err := v.Client.Status().Patch(ctx, v.object, client.MergeFrom(v.before)); err != nil {
		return err
	}
	v.writes.Note(v.object)
	v.tell()
	return nil
}
