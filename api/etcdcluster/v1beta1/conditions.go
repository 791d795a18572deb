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
	// UpToDateReason: nothing is left to change.
	UpToDateReason = "UpToDate"
	// DeletingReason: the machines are being deleted.
	DeletingReason = "Deleting"
	// InvalidTemplateReason: the template of the machines can't be used.
	InvalidTemplateReason = "InvalidTemplate"
)
