package inspect

import (
	"fmt"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
)

// Reasons of links that are not conditions.
const (
	reasonDeleting = "Deleting"
	reasonFailed   = "Failed"
	reasonPaused   = "Paused"
	reasonUnseen   = "NotLookedAt"
	reasonBehind   = "OutdatedInformation"
)

// A wait shorter than patience is normal. The controller usually observes an object within
// observeLimit.
const (
	patience     = 10 * time.Minute
	observeLimit = 10 * time.Second
)

// Remedies that several reasons share.
const (
	applySpec      = "run `drover upgrade cluster -f SPEC`"
	replaceMachine = "if the cluster has health checks, wait for the replacement; otherwise delete the Machine {object}"
	checkManager   = "check that the manager is running: `drover status`"
)

// remedies map reasons to the next action. {cluster} and {object} stand for names.
var remedies = map[string]string{
	infrav1.CredentialsInvalidReason: "ask an administrator to put valid credentials into the Secret that the PacketCluster references, in namespace " +
		anywherev1.SystemNamespace + "; Drover uses them immediately",
	infrav1.InsufficientCapacityReason:    "free a server or choose another machineType; Drover keeps retrying",
	infrav1.QuotaExceededReason:           "free resources of the project or raise its limits; Drover keeps retrying",
	infrav1.InvalidSpecReason:             "correct the machine config in the spec, then " + applySpec,
	infrav1.InstanceProvisionFailedReason: "see `drover machine logs {object}`; if the spec asks for something unavailable, correct it, then " + applySpec,
	infrav1.InstanceNotFoundReason:        replaceMachine,
	infrav1.InstanceTerminatedReason:      replaceMachine,
	infrav1.InstanceStoppedReason:         "power on the device, or delete the Machine {object} to replace it",
	infrav1.InstanceMisplacedReason:       "delete the Machine {object} to replace it in the right location",
	infrav1.BootstrapFailedReason:         "see `drover machine logs {object}` for the error on the machine",
	infrav1.InvalidBootstrapDataReason:    "correct the files and commands that the spec puts onto machines, then " + applySpec,
	infrav1.APIUnavailableReason:          "check that the Packet API is available (for local machines: `drover metal status`); Drover keeps retrying",
	infrav1.APIRateLimitedReason:          "wait: the Packet API limits the rate of requests",
	infrav1.LoadBalancerServiceGoneReason: "set controlPlaneConfiguration.endpoint.host to an address for the cluster",
	infrav1.AddressLostReason:             "return the cluster's elastic address to the project",
	infrav1.AddressAmbiguousReason:        "remove the addresses that do not belong to the cluster, or set controlPlaneConfiguration.endpoint.host",
	infrav1.EndpointUnhealthyReason:       "run `drover describe cluster {cluster}` to find the unhealthy control plane machine",
	etcdv1.QuorumLostReason: "power on the machines of etcd (`drover machine list`); members whose disks are lost can't be replaced, because etcd accepts no changes without quorum: " +
		"restore a snapshot with `drover etcd restore {cluster} --from LOCATION`, as docs/guides/back-up-etcd.md describes, or delete the cluster and create it again",
	etcdv1.MemberUnhealthyReason:          "power on the member's machine (`drover machine list`), or wait: a member that stays unhealthy for ten minutes is replaced",
	addonsv1.InstallOrUpgradeFailedReason: "see `drover addon history {object}`; the last revision contains the error of the cluster",
	addonsv1.ReleaseClaimedReason:         "delete the other add-on that installs the same release",
	clusterv1.MachineDeletingDrainingNodeReason: "wait for its Pods to be evicted; a Pod that a disruption budget protects is evicted once enough of its replicas are healthy: " +
		"check them on the cluster",
	anywherev1.WaitingForCapacityReason:         "delete clusters or machines that are no longer needed, request fewer, or ask an administrator for more; Drover continues when there is room",
	anywherev1.WaitingForQuotaReason:            "delete clusters or machines of the namespace, request fewer, or ask an administrator to raise the quota (`drover get quotas`); Drover continues when there is room",
	anywherev1.WaitingForAddOnsReason:           "see `drover addon status` and `drover get packages`; give the add-on a version that supports the new Kubernetes version, and the upgrade continues",
	anywherev1.AddOnsTimedOutReason:             "correct the add-on, and the upgrade continues; or continue without it: `drover upgrade cluster -f SPEC --skip-add-on-wait`",
	reasonPaused:                                "find out who paused it and why; to resume, remove the annotation " + anywherev1.PausedAnnotation + " from the Cluster",
	reasonFailed:                                "correct the spec, then " + applySpec,
	reasonUnseen:                                checkManager,
	reasonBehind:                                checkManager,
	anywherev1.AutoscalerConstraintNotMetReason: "check that the cluster autoscaler is running, or set the group's count within its bounds",
}

// advice returns the next action for the deepest cause.
func advice(root *Node, deepest Link, now time.Time) string {
	if text, ok := remedies[deepest.Reason]; ok && !justCreated(deepest, now) {
		return strings.NewReplacer("{cluster}", root.Name, "{object}", deepest.Name).Replace(text)
	}
	if took := now.Sub(deepest.Since.Time); took < patience {
		return fmt.Sprintf("wait: in progress for %s; follow it with `drover events cluster %s`", took.Round(time.Second), root.Name)
	}
	return fmt.Sprintf("this takes longer than usual: see `drover describe cluster %s`, `drover events cluster %s` and the manager's log", root.Name, root.Name)
}

// Remedy returns what to do about a node of a tree, or "" if it is ready. A node that waits for
// another one refers to that.
func (n *Node) Remedy(root *Node, now time.Time) string {
	if n.Well() {
		return ""
	}
	link, below := n.cause()
	if below != nil {
		return fmt.Sprintf("see %s %s, which it waits for", below.Kind, below.Name)
	}
	return advice(root, link, now)
}

// Stalled reports whether a cluster that is not ready will probably not become ready without
// somebody's help: there is a remedy for the root cause, or it takes longer than usual. A false
// answer holds until the time that is returned.
func (a Answer) Stalled(now time.Time) (stalled bool, until time.Time) {
	deepest := a.Deepest()
	switch _, known := remedies[deepest.Reason]; {
	case a.Ready:
		return false, time.Time{}
	case known && justCreated(deepest, now):
		return false, deepest.Since.Add(observeLimit)
	case known || now.Sub(deepest.Since.Time) >= patience:
		return true, time.Time{}
	}
	return false, deepest.Since.Add(patience)
}

// justCreated reports whether the controller had no time to observe the object yet.
func justCreated(l Link, now time.Time) bool {
	return (l.Reason == reasonUnseen || l.Reason == reasonBehind) && now.Sub(l.Since.Time) < observeLimit
}
