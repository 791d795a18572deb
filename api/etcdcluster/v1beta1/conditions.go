package v1beta1

// Conditions of an EtcdadmCluster. Ready summarizes them.
const (
	// EtcdCertificatesAvailable reports whether the CA and the certificate of API servers exist.
	EtcdCertificatesAvailable = "EtcdCertificatesAvailable"
	// EtcdEndpointsAvailable reports whether an address is reserved for each slot.
	EtcdEndpointsAvailable = "EtcdEndpointsAvailable"
	// Initialized reports whether etcd has formed.
	Initialized = "Initialized"
	// EtcdClusterHealthy reports whether etcd has quorum and all members are healthy.
	EtcdClusterHealthy = "EtcdClusterHealthy"
	// EtcdClusterResizeCompleted reports whether etcd has the wanted number of members.
	EtcdClusterResizeCompleted = "EtcdClusterResizeCompleted"
	// EtcdMachinesSpecUpToDate reports whether all members run on machines of the current spec.
	EtcdMachinesSpecUpToDate = "EtcdMachinesSpecUpToDate"
)

// Conditions of an EtcdadmCluster that Ready doesn't depend on.
const (
	// EtcdMachinesReady reports whether all machines run, except those that are being deleted.
	EtcdMachinesReady = "EtcdMachinesReady"
	// EtcdClusterHasNoOutdatedMachines reports whether no machine of a former spec is left, not even
	// one that is being deleted.
	EtcdClusterHasNoOutdatedMachines = "EtcdClusterHasNoOutdatedMachines"
)

// Reasons of these conditions.
const (
	// AvailableReason: what the condition is about exists.
	AvailableReason = "Available"
	// WaitingForInfrastructureReason: the PacketCluster is not ready yet.
	WaitingForInfrastructureReason = "WaitingForClusterInfrastructure"
	// WaitingForMembersReason: members are starting.
	WaitingForMembersReason = "WaitingForMembers"
	// HealthyReason: all members are healthy.
	HealthyReason = "Healthy"
	// MemberUnhealthyReason: a member does not answer, but etcd has quorum.
	MemberUnhealthyReason = "MemberUnhealthy"
	// QuorumLostReason: too many members don't answer, so etcd accepts no writes.
	QuorumLostReason = "QuorumLost"
	// ScalingReason: members are being added or removed.
	ScalingReason = "Scaling"
	// RollingOutReason: members are being replaced.
	RollingOutReason = "EtcdRollingUpdateInProgress"
	// MachinesNotReadyReason: machines are missing or don't run.
	MachinesNotReadyReason = "EtcdMachinesNotReady"
	// OutdatedMachinesReason: machines of a former spec are left.
	OutdatedMachinesReason = "EtcdClusterHasOutdatedMachines"
	// UpToDateReason: nothing is left to change.
	UpToDateReason = "UpToDate"
	// DeletingReason: the machines are being deleted.
	DeletingReason = "Deleting"
	// InvalidTemplateReason: the template of the machines can't be used.
	InvalidTemplateReason = "InvalidTemplate"
)
