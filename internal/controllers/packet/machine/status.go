package machine

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/packet/failure"
	"github.com/drover-dev/drover/internal/metal/client"
)

// report computes the status from the facts.
func (s *scope) report() {
	m := s.machine
	condition := instanceCondition(s.facts)
	conditions.Set(m, condition)
	for _, c := range []*metav1.Condition{sessionCondition(s.facts), bootCondition(s.facts)} {
		if c != nil {
			conditions.Set(m, *c)
		}
	}
	summarize(m)
	m.Status.FailureReason, m.Status.FailureMessage = failureOf(s.facts, condition.Message)
	if s.lost != "" {
		m.Status.InstanceStatus = nil
	}
	if s.lost != "" || s.Deleting() {
		m.Status.Ready = false
	}
	if s.device == nil {
		return
	}
	m.Status.InstanceStatus = ptr.To(infrav1.InstanceStatus(s.device.State))
	m.Status.Addresses = addresses(s.device)
	m.Status.Ready = condition.Status == metav1.ConditionTrue
	if m.Status.Ready {
		m.Status.Initialization.Provisioned = ptr.To(true)
	}
	m.Status.FailureDomain = failureDomain(s.packetCluster, s.device)
}

// started sets the conditions of a machine whose device is being ordered. Before an order is
// repeated, they keep the failure of the last one: they would change twice a minute otherwise, and
// hide the cause in between.
func (s *scope) started(id string) {
	if last := conditions.Get(s.machine, infrav1.InstanceReady); id == "" && last != nil && failure.IsReason(last.Reason) {
		return
	}
	conditions.Set(s.machine, started(id))
	summarize(s.machine)
}

func summarize(m *infrav1.PacketMachine) {
	err := conditions.SetSummaryCondition(m, m, clusterv1.ReadyCondition,
		conditions.ForConditionTypes{infrav1.InstanceReady, infrav1.BGPSessionReady, infrav1.BootstrapExecSucceeded},
		conditions.IgnoreTypesIfMissing{infrav1.BGPSessionReady, infrav1.BootstrapExecSucceeded})
	if err != nil {
		conditions.Set(m, metav1.Condition{
			Type: clusterv1.ReadyCondition, Status: metav1.ConditionUnknown, Reason: clusterv1.InternalErrorReason, Message: err.Error(),
		})
	}
}

// instanceCondition returns the condition InstanceReady. If the API does not respond, the state of
// a machine that was active before is unknown.
func instanceCondition(f facts) metav1.Condition {
	if f.wait != nil {
		status := metav1.ConditionFalse
		if f.provisioned && failure.Inconclusive(f.wait) {
			status = metav1.ConditionUnknown
		}
		return condition(status, f.wait.Reason, f.wait.Message)
	}
	if f.device == nil {
		return condition(metav1.ConditionUnknown, infrav1.InstanceNotReadyReason, "Waiting for the state of the device")
	}
	if f.misplaced != "" {
		return condition(metav1.ConditionFalse, infrav1.InstanceMisplacedReason, f.misplaced+": delete the Machine")
	}
	if leaving(f.device.State) && !f.provisioned {
		return condition(metav1.ConditionFalse, infrav1.InstanceProvisionFailedReason, replacing(f.device.ID, f.cause))
	}
	return deviceCondition(f.device, f.cause)
}

// deviceCondition returns the condition that follows from the state of the device.
func deviceCondition(d *client.Device, cause string) metav1.Condition {
	const no = metav1.ConditionFalse
	switch infrav1.InstanceStatus(d.State) {
	case infrav1.InstanceActive:
		return condition(metav1.ConditionTrue, infrav1.InstanceActiveReason, "")
	case infrav1.InstanceQueued, infrav1.InstanceProvisioning, "":
		return started(d.ID)
	case infrav1.InstanceInactive:
		return condition(no, infrav1.InstanceStoppedReason, fmt.Sprintf("Device %q is powered off", d.ID))
	case infrav1.InstanceFailed:
		return condition(no, infrav1.InstanceProvisionFailedReason,
			fmt.Sprintf("Device %q failed to provision%s: delete the Machine, or let a MachineHealthCheck replace it", d.ID, because(cause)))
	case infrav1.InstanceDeprovisioning, infrav1.InstanceDeleted:
		return condition(no, infrav1.InstanceTerminatedReason, fmt.Sprintf("Device %q is being deleted, but not by Drover", d.ID))
	default:
		return condition(no, infrav1.InstanceNotReadyReason, fmt.Sprintf("Device %q is in state %s", d.ID, d.State))
	}
}

// because returns the cause in parentheses, if there is one.
func because(cause string) string {
	if cause == "" {
		return ""
	}
	return " (" + cause + ")"
}

func started(id string) metav1.Condition {
	message := "Ordering a device"
	if id != "" {
		message = fmt.Sprintf("Provisioning device %q", id)
	}
	return condition(metav1.ConditionFalse, infrav1.InstanceProvisionStartedReason, message)
}

func condition(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: infrav1.InstanceReady, Status: status, Reason: reason, Message: message}
}

func sessionCondition(f facts) *metav1.Condition {
	switch {
	case f.session == nil:
		return nil
	case f.session.problem != "":
		return &metav1.Condition{Type: infrav1.BGPSessionReady, Status: metav1.ConditionFalse, Reason: infrav1.APIUnavailableReason, Message: f.session.problem}
	default:
		return &metav1.Condition{Type: infrav1.BGPSessionReady, Status: metav1.ConditionTrue, Reason: infrav1.BGPSessionRecordedReason}
	}
}

func bootCondition(f facts) *metav1.Condition {
	switch {
	case f.boot == nil:
		return nil
	case f.boot.joined:
		return &metav1.Condition{Type: infrav1.BootstrapExecSucceeded, Status: metav1.ConditionTrue, Reason: infrav1.NodeJoinedReason, Message: f.boot.message}
	case f.boot.failed:
		return &metav1.Condition{
			Type: infrav1.BootstrapExecSucceeded, Status: metav1.ConditionFalse, Reason: infrav1.BootstrapFailedReason,
			Message: fmt.Sprintf("The userdata failed on device %q: %s", f.device.ID, f.boot.message),
		}
	default:
		return &metav1.Condition{Type: infrav1.BootstrapExecSucceeded, Status: metav1.ConditionTrue, Reason: infrav1.BootstrapSucceededReason, Message: f.boot.message}
	}
}

// failureOf returns the deprecated fields, which scripts still read. It never reports what may pass
// by itself, and they disappear with their cause.
func failureOf(f facts, message string) (reason, explanation *string) {
	switch {
	case f.exhausted:
		return ptr.To(infrav1.FailureCreate), &message
	case f.provisioned && f.lost != "":
		return ptr.To(infrav1.FailureUpdate), &message
	case f.provisioned && f.device != nil && f.device.State == string(infrav1.InstanceFailed):
		return ptr.To(infrav1.FailureUpdate), &message
	default:
		return nil, nil
	}
}

// addresses returns public addresses as external, private ones as internal.
func addresses(d *client.Device) []clusterv1.MachineAddress {
	var out []clusterv1.MachineAddress
	for _, ip := range d.IPAddresses {
		if ip.Address == "" {
			continue
		}
		kind := clusterv1.MachineInternalIP
		if ip.Public {
			kind = clusterv1.MachineExternalIP
		}
		out = append(out, clusterv1.MachineAddress{Type: kind, Address: ip.Address})
	}
	return out
}

func failureDomain(cluster *infrav1.PacketCluster, d *client.Device) string {
	if cluster == nil || len(cluster.Spec.FailureDomains) == 0 {
		return ""
	}
	return d.MetroCode()
}

// changing reports whether a device is in a state that should end soon.
func changing(state string) bool {
	switch infrav1.InstanceStatus(state) {
	case infrav1.InstanceActive, infrav1.InstanceInactive, infrav1.InstanceFailed, infrav1.InstanceDeleted:
		return false
	default:
		return true
	}
}

// leaving reports whether a device is being deprovisioned.
func leaving(state string) bool {
	return state == string(infrav1.InstanceDeprovisioning) || state == string(infrav1.InstanceDeleted)
}
