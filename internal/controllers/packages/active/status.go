package active

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// report writes the facts and the decision to the status. The status of a deleted object stays
// unchanged.
func report(o *packagesv1.PackageBundleController, f facts, c choice) {
	if !f.deleting.IsZero() {
		return
	}
	s := &o.Status
	s.State, s.Detail = c.state, c.detail
	s.Spec = f.spec.DeepCopy()
	s.ObservedGeneration = o.Generation
	if f.ignored {
		s.Conditions = nil
		set(o, condition(packagesv1.Ready, metav1.ConditionFalse, "Ignored",
			"PackageBundleControllers are used only in namespace "+packagesv1.Namespace))
		return
	}
	s.KubernetesVersion = f.version
	if f.latestCheck.place == f.place && f.latestCheck.place != "" {
		s.LatestBundle = f.latestCheck.name
		if f.latestCheck.err == nil {
			s.LastCheck = &metav1.Time{Time: f.latestCheck.at.Truncate(1e9)}
		}
	}
	set(o, clusterCondition(f))
	set(o, registryCondition(f))
	set(o, bundleCondition(f))
	if credentials := credentialsCondition(f); credentials != nil {
		set(o, credentials)
	} else {
		meta.RemoveStatusCondition(&s.Conditions, packagesv1.CredentialsSynced)
	}
	set(o, readyCondition(s.Conditions))
}

// set sets a condition. A nil condition keeps the previous one.
func set(o *packagesv1.PackageBundleController, c *metav1.Condition) {
	if c == nil {
		return
	}
	c.ObservedGeneration = o.Generation
	meta.SetStatusCondition(&o.Status.Conditions, *c)
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) *metav1.Condition {
	return &metav1.Condition{Type: kind, Status: status, Reason: reason, Message: text.Truncate(message)}
}

// clusterCondition returns nil to keep the previous condition while a query is running.
func clusterCondition(f facts) *metav1.Condition {
	switch {
	case f.unreachable != nil:
		return condition(packagesv1.ClusterReachable, metav1.ConditionFalse, f.unreachable.reason, f.unreachable.message)
	case !f.versionStale:
		return condition(packagesv1.ClusterReachable, metav1.ConditionTrue, packagesv1.ReachableReason, "")
	case meta.FindStatusCondition(f.status.Conditions, packagesv1.ClusterReachable) != nil:
		return nil
	default:
		return condition(packagesv1.ClusterReachable, metav1.ConditionUnknown, "Asking", fmt.Sprintf("Waiting for Cluster %q to report its version", f.cluster))
	}
}

// accessDenied is the reason for a registry that rejects the credentials, or requires some.
const accessDenied = "AccessDenied"

func registryCondition(f facts) *metav1.Condition {
	switch {
	case f.place == "" || f.latestCheck.place != f.place:
		if f.place != "" && meta.FindStatusCondition(f.status.Conditions, packagesv1.RegistryReachable) != nil {
			return nil // a check is running
		}
		return condition(packagesv1.RegistryReachable, metav1.ConditionUnknown, "Waiting", "Waiting for the first check for bundles")
	case f.latestCheck.err == nil:
		return condition(packagesv1.RegistryReachable, metav1.ConditionTrue, packagesv1.ReachableReason, "")
	}
	reason := packagesv1.UnreachableReason
	switch {
	case f.latestCheck.refused:
		reason = packagesv1.BundleRefusedReason
	case errors.Is(f.latestCheck.err, artifact.ErrNotFound):
		reason = packagesv1.NotPresentReason
	case errors.Is(f.latestCheck.err, artifact.ErrForbidden):
		reason = accessDenied
	}
	message := "Checking for bundles failed: " + f.latestCheck.err.Error()
	if reason == accessDenied && f.credentials.denied != "" {
		message += "; " + f.credentials.denied
	}
	return condition(packagesv1.RegistryReachable, metav1.ConditionFalse, reason, message)
}

func bundleCondition(f facts) *metav1.Condition {
	name := f.spec.ActiveBundle
	no := func(reason, message string) *metav1.Condition {
		return condition(packagesv1.BundleActive, metav1.ConditionFalse, reason, message)
	}
	required := (*bundle.UpgradeRequiredError)(nil)
	switch {
	case name == "" && f.latestFault != nil:
		return no(packagesv1.NotPresentReason, fmt.Sprintf("No bundle is active: bundle %q cannot be used: %v", f.newest(), f.latestFault))
	case name == "":
		return no(packagesv1.NotPresentReason, "No bundle is active: waiting for the newest bundle")
	case f.active == nil:
		return no(packagesv1.NotPresentReason, "Active bundle is missing: "+notPresent(f))
	case errors.As(f.activeFault, &required):
		return no(packagesv1.UpgradeRequiredReason, "Upgrade Drover: "+f.activeFault.Error())
	case f.activeFault != nil:
		return no(packagesv1.BundleRefusedReason, fmt.Sprintf("Bundle %q cannot be used: %v", name, f.activeFault))
	}
	parsed, err := bundle.ParseName(name)
	if err != nil {
		return no(packagesv1.BundleRefusedReason, err.Error())
	}
	if f.version != "" && parsed.Kubernetes() != f.version {
		return no(packagesv1.VersionMismatchReason,
			fmt.Sprintf("Bundle %q is for Kubernetes %s but the cluster runs %s: activate a bundle whose name starts with v%s-",
				name, parsed.Kubernetes(), f.version, strings.ReplaceAll(f.version, ".", "-")))
	}
	return condition(packagesv1.BundleActive, metav1.ConditionTrue, packagesv1.ActiveReason, "")
}

func credentialsCondition(f facts) *metav1.Condition {
	c := &f.credentials
	synced := func(status metav1.ConditionStatus, reason, message string) *metav1.Condition {
		return condition(packagesv1.CredentialsSynced, status, reason, message)
	}
	switch {
	case !c.any():
		return nil
	case c.invalid != nil:
		return synced(metav1.ConditionFalse, packagesv1.SyncFailedReason, "Registry mirror is invalid: "+c.invalid.Error())
	case c.unbound != "":
		return synced(metav1.ConditionFalse, packagesv1.NotBoundReason, c.unbound)
	case c.failed != nil:
		return synced(metav1.ConditionFalse, packagesv1.SyncFailedReason, "Copying credentials failed: "+c.failed.Error())
	case c.local() != leave:
		return synced(metav1.ConditionFalse, packagesv1.SyncPendingReason, "Creating the Secret with credentials")
	case len(c.wanted()) > 0 && f.connected == nil:
		return synced(metav1.ConditionUnknown, packagesv1.SyncPendingReason, "Waiting for the cluster to become reachable")
	case c.unseen, !c.plan.empty():
		return synced(metav1.ConditionFalse, packagesv1.SyncPendingReason, "Copying credentials to the cluster")
	default:
		return synced(metav1.ConditionTrue, packagesv1.SyncedReason, "")
	}
}

// readyCondition summarizes the other conditions: it is the first one that is False, or else the
// first one that is Unknown.
func readyCondition(conditions []metav1.Condition) *metav1.Condition {
	ready := condition(packagesv1.Ready, metav1.ConditionTrue, packagesv1.Ready, "")
	for _, kind := range []string{packagesv1.ClusterReachable, packagesv1.BundleActive, packagesv1.RegistryReachable, packagesv1.CredentialsSynced} {
		c := meta.FindStatusCondition(conditions, kind)
		if c == nil || c.Status == metav1.ConditionTrue {
			continue
		}
		if ready.Status == metav1.ConditionTrue || ready.Status == metav1.ConditionUnknown && c.Status == metav1.ConditionFalse {
			ready = condition(packagesv1.Ready, c.Status, c.Reason, kind+": "+c.Message)
		}
	}
	return ready
}

func isTrue(conditions []metav1.Condition, kind string) bool {
	return meta.IsStatusConditionTrue(conditions, kind)
}
