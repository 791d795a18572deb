package inspect

import (
	"fmt"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
)

// Reasons of links that are no conditions.
const (
	reasonDeleting = "Deleting"
	reasonFailed   = "Failed"
	reasonPaused   = "Paused"
	reasonUnseen   = "NotLookedAt"
	reasonBehind   = "OutdatedInformation"
)

// patience is how long something may take before it is worth a look.
const patience = 10 * time.Minute

// remedies are what to do about a reason. {cluster} and {object} stand for names.
var remedies = map[string]string{
	infrav1.CredentialsInvalidReason: "have an administrator put valid credentials into the Secret that the PacketCluster names, in namespace " +
		anywherev1.SystemNamespace + "; they are used at once",
	infrav1.InsufficientCapacityReason:          "free a server or choose another machineType; Drover goes on asking for one meanwhile",
	infrav1.QuotaExceededReason:                 "free what the project does not need, or raise its limits; Drover goes on trying",
	infrav1.InvalidSpecReason:                   "correct the machine config in the spec, and run `drover upgrade cluster -f SPEC`",
	infrav1.InstanceProvisionFailedReason:       "see `drover machine logs {object}`; if the spec asks for what can't be had, correct it and run `drover upgrade cluster -f SPEC`",
	infrav1.InstanceNotFoundReason:              "nothing if the cluster has a health check, which replaces it; else delete the Machine {object}",
	infrav1.InstanceTerminatedReason:            "nothing if the cluster has a health check, which replaces it; else delete the Machine {object}",
	infrav1.InstanceStoppedReason:               "power the device on, or delete the Machine {object} to have it replaced",
	infrav1.InstanceMisplacedReason:             "delete the Machine {object} to have it made anew in the right place",
	infrav1.BootstrapFailedReason:               "see `drover machine logs {object}` for what went wrong on the machine",
	infrav1.InvalidBootstrapDataReason:          "correct what the spec puts onto machines, and run `drover upgrade cluster -f SPEC`",
	infrav1.APIUnavailableReason:                "see whether the Packet API answers, for local machines with `drover metal status`; it is asked again by itself",
	infrav1.APIRateLimitedReason:                "wait: the Packet API asked to be left alone for a while",
	infrav1.LoadBalancerServiceGoneReason:       "give the cluster an endpoint in controlPlaneConfiguration.endpoint.host",
	infrav1.AddressLostReason:                   "put the cluster's elastic address back into the project",
	infrav1.AddressAmbiguousReason:              "remove the addresses that are not the cluster's, or give it one in controlPlaneConfiguration.endpoint.host",
	infrav1.EndpointUnhealthyReason:             "see `drover describe cluster {cluster}` for the control plane machine that does not answer",
	addonsv1.InstallOrUpgradeFailedReason:       "see `drover addon history {object}`, the last revision says what the cluster refused",
	addonsv1.ReleaseClaimedReason:               "remove the other add-on that installs the same release",
	clusterv1.MachineDeletingDrainingNodeReason: "wait until its Pods have gone elsewhere; one that a disruption budget keeps goes once enough of its kind are well: see how they are on the cluster",
	reasonPaused: "find out who paused it and why; to go on, remove the annotation " + anywherev1.PausedAnnotation + " from the Cluster",
	reasonFailed: "correct the spec, and run `drover upgrade cluster -f SPEC`",
	reasonUnseen: "see whether the manager runs: `drover status`",
	reasonBehind: "see whether the manager runs: `drover status`",
	anywherev1.AutoscalerConstraintNotMetReason: "see whether the cluster autoscaler runs, or set the group's count between its bounds",
}

// advice is the next action.
func advice(root *Node, deepest Link, now time.Time) string {
	if text, ok := remedies[deepest.Reason]; ok && !fresh(deepest, now) {
		return strings.NewReplacer("{cluster}", root.Name, "{object}", deepest.Name).Replace(text)
	}
	if now.Sub(deepest.Since.Time) < patience {
		return fmt.Sprintf("wait: it is being worked on, since %s; `drover events cluster %s` tells how far it is", now.Sub(deepest.Since.Time).Round(time.Second), root.Name)
	}
	return fmt.Sprintf("it takes longer than usual: see `drover describe cluster %s` and `drover events cluster %s`, and the manager's log", root.Name, root.Name)
}

// fresh tells of what nobody had time to look at yet.
func fresh(l Link, now time.Time) bool {
	return (l.Reason == reasonUnseen || l.Reason == reasonBehind) && now.Sub(l.Since.Time) < patience/60
}
