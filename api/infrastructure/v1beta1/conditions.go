package v1beta1

// Conditions of a PacketCluster. Ready, which both kinds have, summarizes the others.
const (
	// NetworkInfrastructureReady reports whether the control plane endpoint exists.
	NetworkInfrastructureReady = "NetworkInfrastructureReady"

	// AddressReservedReason: the elastic address of the cluster is reserved.
	AddressReservedReason = "AddressReserved"
	// ExternalEndpointReason: the user provides the endpoint, and Drover does not manage it.
	ExternalEndpointReason = "ExternalEndpoint"
	// LoadBalancerServiceGoneReason: vipManager is EMLB, and no endpoint is specified instead.
	LoadBalancerServiceGoneReason = "LoadBalancerServiceGone"
	// AddressLostReason: the elastic address of a running cluster is no longer in the project.
	AddressLostReason = "AddressLost"
	// AddressInUseReason: a device outside of the cluster has the address, which lacks the
	// cluster's tags.
	AddressInUseReason = "AddressInUse"
	// AddressAmbiguousReason: several reservations could belong to the cluster.
	AddressAmbiguousReason = "AddressAmbiguous"
	// QuotaExceededReason: the project has reached a quota.
	QuotaExceededReason = "QuotaExceeded"

	// EndpointServed reports whether the elastic address is on a responsive machine (vipManager
	// CPEM).
	EndpointServed = "EndpointServed"

	// EndpointHealthyReason: the machine with the address responds.
	EndpointHealthyReason = "EndpointHealthy"
	// EndpointAssignedReason: a machine has the address; its health is not known yet.
	EndpointAssignedReason = "EndpointAssigned"
	// EndpointUnhealthyReason: no control plane machine responds.
	EndpointUnhealthyReason = "EndpointUnhealthy"
	// NoControlPlaneMachineReason: no machine can have the address yet.
	NoControlPlaneMachineReason = "NoControlPlaneMachine"
)

// Conditions of a PacketMachine.
const (
	// InstanceReady reports whether the device exists and is powered on.
	InstanceReady = "InstanceReady"

	// InstanceActiveReason: the device is active.
	InstanceActiveReason = "InstanceActive"
	// InstanceNotFoundReason: the machine's device no longer exists.
	InstanceNotFoundReason = "InstanceNotFound"
	// InstanceTerminatedReason: the device is being deprovisioned, and not by Drover.
	InstanceTerminatedReason = "InstanceTerminated"
	// InstanceStoppedReason: the device is powered off.
	InstanceStoppedReason = "InstanceStopped"
	// InstanceNotReadyReason: the device is changing its state.
	InstanceNotReadyReason = "InstanceNotReady"
	// InstanceProvisionStartedReason: the device is ordered and not active yet.
	InstanceProvisionStartedReason = "InstanceProvisionStarted"
	// InstanceProvisionFailedReason: the device can't be provisioned as specified.
	InstanceProvisionFailedReason = "InstanceProvisionFailed"
	// InsufficientCapacityReason: no server is available; Drover keeps retrying.
	InsufficientCapacityReason = "InsufficientCapacity"
	// InstanceMisplacedReason: the device is not in the metro or facility of its machine.
	InstanceMisplacedReason = "InstanceMisplaced"
	// WaitingForClusterInfrastructureReason: the PacketCluster is not ready.
	WaitingForClusterInfrastructureReason = "WaitingForClusterInfrastructure"
	// WaitingForBootstrapDataReason: the machine has no userdata yet.
	WaitingForBootstrapDataReason = "WaitingForBootstrapData"
	// InvalidBootstrapDataReason: the userdata can't be used.
	InvalidBootstrapDataReason = "InvalidBootstrapData"

	// BGPSessionReady reports whether the device has its BGP session (vipManager KUBE_VIP, control
	// plane machines).
	BGPSessionReady = "BGPSessionReady"
	// BGPSessionRecordedReason: the session was created.
	BGPSessionRecordedReason = "BGPSessionRecorded"

	// BootstrapExecSucceeded reports whether the machine has executed its userdata. It is not set
	// before the machine has reported, or has become a node.
	BootstrapExecSucceeded = "BootstrapExecSucceeded"
	// BootstrapSucceededReason: the machine reported success; the message lists parts of the
	// userdata without effect.
	BootstrapSucceededReason = "BootstrapSucceeded"
	// BootstrapFailedReason: the machine reported a failure.
	BootstrapFailedReason = "BootstrapFailed"
	// NodeJoinedReason: the machine is a node, so its userdata was executed.
	NodeJoinedReason = "NodeJoined"
)

// Reasons that both kinds use.
const (
	// APIUnavailableReason: the Packet API does not respond, or its response is invalid. Drover
	// retries.
	APIUnavailableReason = "APIUnavailable"
	// APIRateLimitedReason: the Packet API limits requests.
	APIRateLimitedReason = "APIRateLimited"
	// CredentialsInvalidReason: credentials are missing, or the Packet API rejects them.
	CredentialsInvalidReason = "CredentialsInvalid"
	// InvalidSpecReason: the Packet API rejects the request.
	InvalidSpecReason = "InvalidSpec"
	// DeletingReason: the resources of the object are being deleted.
	DeletingReason = "Deleting"
)

// Values of status.failureReason.
const (
	FailureCreate = "CreateError"
	FailureUpdate = "UpdateError"
)
