package v1beta1

// Conditions of a PacketCluster. Ready, which both kinds have, sums up the others.
const (
	// NetworkInfrastructureReady says that the control plane endpoint exists.
	NetworkInfrastructureReady = "NetworkInfrastructureReady"

	// AddressReservedReason: the elastic address of the cluster is reserved.
	AddressReservedReason = "AddressReserved"
	// ExternalEndpointReason: the endpoint is the user's own, Drover does not look after it.
	ExternalEndpointReason = "ExternalEndpoint"
	// LoadBalancerServiceGoneReason: vipManager is EMLB, and no endpoint was given in its place.
	LoadBalancerServiceGoneReason = "LoadBalancerServiceGone"
	// AddressLostReason: the elastic address of a running cluster is no longer in the project.
	AddressLostReason = "AddressLost"
	// AddressAmbiguousReason: several reservations could be the cluster's, and Drover does not guess.
	AddressAmbiguousReason = "AddressAmbiguous"
	// QuotaExceededReason: the project may have no more of what is asked for.
	QuotaExceededReason = "QuotaExceeded"

	// EndpointServed says that the elastic address is on a machine that answers (vipManager CPEM).
	EndpointServed = "EndpointServed"

	// EndpointHealthyReason: the machine that has the address answers.
	EndpointHealthyReason = "EndpointHealthy"
	// EndpointAssignedReason: a machine has the address, whether it answers is not known yet.
	EndpointAssignedReason = "EndpointAssigned"
	// EndpointUnhealthyReason: the machine that has the address does not answer, and no other one does.
	EndpointUnhealthyReason = "EndpointUnhealthy"
	// NoControlPlaneMachineReason: there is no machine yet that could have the address.
	NoControlPlaneMachineReason = "NoControlPlaneMachine"
)

// Conditions of a PacketMachine.
const (
	// InstanceReady says that the device is there and powered on.
	InstanceReady = "InstanceReady"

	// InstanceActiveReason: the device is up.
	InstanceActiveReason = "InstanceActive"
	// InstanceNotFoundReason: the device that the machine ran on is gone.
	InstanceNotFoundReason = "InstanceNotFound"
	// InstanceTerminatedReason: the device is being removed, and not by Drover.
	InstanceTerminatedReason = "InstanceTerminated"
	// InstanceStoppedReason: the device is powered off.
	InstanceStoppedReason = "InstanceStopped"
	// InstanceNotReadyReason: the device is changing its state.
	InstanceNotReadyReason = "InstanceNotReady"
	// InstanceProvisionStartedReason: the device is ordered and not up yet.
	InstanceProvisionStartedReason = "InstanceProvisionStarted"
	// InstanceProvisionFailedReason: the device can't be had as it is asked for.
	InstanceProvisionFailedReason = "InstanceProvisionFailed"
	// InsufficientCapacityReason: no server is free; Drover goes on asking.
	InsufficientCapacityReason = "InsufficientCapacity"
	// InstanceMisplacedReason: the device is not in the metro or facility of its machine.
	InstanceMisplacedReason = "InstanceMisplaced"
	// WaitingForClusterInfrastructureReason: the PacketCluster is not ready.
	WaitingForClusterInfrastructureReason = "WaitingForClusterInfrastructure"
	// WaitingForBootstrapDataReason: the machine has no userdata yet.
	WaitingForBootstrapDataReason = "WaitingForBootstrapData"
	// InvalidBootstrapDataReason: the userdata can't be used.
	InvalidBootstrapDataReason = "InvalidBootstrapData"

	// BGPSessionReady says that the device has its BGP session (vipManager KUBE_VIP, control plane machines).
	BGPSessionReady = "BGPSessionReady"
	// BGPSessionRecordedReason: the session was made.
	BGPSessionRecordedReason = "BGPSessionRecorded"

	// BootstrapExecSucceeded says whether the machine has done what its userdata says. It is not there before the machine has told, or
	// has become a node.
	BootstrapExecSucceeded = "BootstrapExecSucceeded"
	// BootstrapSucceededReason: the machine said so; the message tells what of the userdata it left out.
	BootstrapSucceededReason = "BootstrapSucceeded"
	// BootstrapFailedReason: the machine said why not.
	BootstrapFailedReason = "BootstrapFailed"
	// NodeJoinedReason: the machine is a node, so that it must have.
	NodeJoinedReason = "NodeJoined"
)

// Reasons that both kinds use.
const (
	// APIUnavailableReason: the Packet API does not answer, or not in a way that can be understood. It is asked again.
	APIUnavailableReason = "APIUnavailable"
	// APIRateLimitedReason: the Packet API asks to be left alone for a while.
	APIRateLimitedReason = "APIRateLimited"
	// CredentialsInvalidReason: there are no credentials, or the Packet API refuses them.
	CredentialsInvalidReason = "CredentialsInvalid"
	// InvalidSpecReason: the Packet API refuses what is asked for.
	InvalidSpecReason = "InvalidSpec"
	// DeletingReason: what belongs to the object is being removed.
	DeletingReason = "Deleting"
)

// Values of status.failureReason.
const (
	FailureCreate = "CreateError"
	FailureUpdate = "UpdateError"
)
