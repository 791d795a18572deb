package v1alpha1

// Conditions of a Cluster.
const (
	// Ready sums up the others.
	Ready = "Ready"
	// ControlPlaneInitialized says that an API server answered once. It never goes back.
	ControlPlaneInitialized = "ControlPlaneInitialized"
	// ControlPlaneReady says that all control planes are there, up to date and healthy.
	ControlPlaneReady = "ControlPlaneReady"
	// WorkersReady says that all workers are there, up to date and healthy.
	WorkersReady = "WorkersReady"
	// DefaultCNIConfigured says that pods have a network.
	DefaultCNIConfigured = "DefaultCNIConfigured"
)

// Reasons of conditions that are False, or Unknown.
const (
	// OutdatedInformationReason: what is known is older than the spec.
	OutdatedInformationReason = "OutdatedInformation"
	// ControlPlaneInitializationInProgressReason: the first control plane is being made.
	ControlPlaneInitializationInProgressReason = "ControlPlaneInitializationInProgress"
	// ControlPlaneNotReadyReason: workers or the network wait for the control plane.
	ControlPlaneNotReadyReason = "ControlPlaneNotReady"
	// ControlPlaneNotInitializedReason: workers or the network wait for the first control plane.
	ControlPlaneNotInitializedReason = "ControlPlaneNotInitialized"
	// NodesNotReadyReason: machines are there whose nodes are not ready.
	NodesNotReadyReason = "NodesNotReady"
	// ControlPlaneComponentsUnhealthyReason: a part of a control plane, such as its etcd, does not work.
	ControlPlaneComponentsUnhealthyReason = "ControlPlaneComponentsUnhealthy"
	// ScalingUpReason: machines are being added.
	ScalingUpReason = "ScalingUp"
	// ScalingDownReason: machines are being removed.
	ScalingDownReason = "ScalingDown"
	// RollingUpgradeInProgressReason: machines are being replaced.
	RollingUpgradeInProgressReason = "RollingUpgradeInProgress"
	// InPlaceUpgradeInProgressReason is kept, and never given.
	InPlaceUpgradeInProgressReason = "InPlaceUpgradeInProgress"
	// ExternalEtcdNotAvailableReason: the etcd machines are not ready.
	ExternalEtcdNotAvailableReason = "ExternalEtcdNotAvailable"
	// AutoscalerConstraintNotMetReason: a group has more or fewer workers than its bounds.
	AutoscalerConstraintNotMetReason = "AutoscalerConstraintNotMet"
	// KubeadmControlPlaneNotReadyReason: the KubeadmControlPlane says so.
	KubeadmControlPlaneNotReadyReason = "KubeadmControlPlaneNotReady"
	// MachineDeploymentNotReadyReason: a MachineDeployment says so.
	MachineDeploymentNotReadyReason = "MachineDeploymentNotReady"
	// DefaultCNIUpgradeInProgressReason: the network is being installed or changed.
	DefaultCNIUpgradeInProgressReason = "DefaultCNIUpgradeInProgressReason"
	// SkipUpgradesForDefaultCNIConfiguredReason: the spec leaves the network to its user.
	SkipUpgradesForDefaultCNIConfiguredReason = "SkipUpgradesForDefaultCNIConfigured"
	// FailedReason: the Cluster can't be worked on; status.failureReason and status.failureMessage say why.
	FailedReason = "Failed"
	// PausedReason: the Cluster has PausedAnnotation.
	PausedReason = "Paused"
	// DeletingReason: the Cluster is being removed.
	DeletingReason = "Deleting"
)

// Reasons of conditions that are True. The schema of a condition asks for one.
const (
	// ReadyReason: all conditions are True.
	ReadyReason = "Ready"
	// InitializedReason: an API server answered.
	InitializedReason = "Initialized"
	// ConfiguredReason: the network is installed.
	ConfiguredReason = "Configured"
)

// Messages of conditions. Those with verbs are formats.
const (
	FirstControlPlaneUnavailableMessage = "The first control plane instance is not available yet"
	ControlPlaneNotReadyMessage         = "Control plane is not ready yet"
	ControlPlaneOutdatedMessage         = "Control plane nodes not up-to-date yet, %d upgrading (%d up to date)"
	ControlPlaneScalingUpMessage        = "Scaling up control plane nodes, %d expected (%d actual)"
	ControlPlaneScalingDownMessage      = "Scaling down control plane nodes, %d expected (%d actual)"
	ControlPlaneNodesNotReadyMessage    = "Control plane nodes not ready yet, %d expected (%d ready)"
	KubeadmControlPlaneNotReadyMessage  = "Kubeadm control plane %s not ready yet"
	WorkersOutdatedMessage              = "Worker nodes not up-to-date yet, %d upgrading (%d up to date)"
	WorkersScalingUpMessage             = "Scaling up worker nodes, %d expected (%d actual)"
	WorkersScalingDownMessage           = "Scaling down worker nodes, %d expected (%d actual)"
	WorkersNotReadyMessage              = "Worker nodes not ready yet, %d expected (%d ready)"
	AutoscalerConstraintNotMetMessage   = "Worker nodes count for %s not between %d and %d yet (%d actual)"
	MachineDeploymentNotReadyMessage    = "Machine deployment %s not ready yet"
	EtcdNotAvailableMessage             = "Etcd cluster is not available"
	EtcdNotReadyMessage                 = "Etcd is not ready"
)

// FailureReason says why a Cluster can't be worked on until its user does something.
type FailureReason string

// Failure reasons of a Cluster.
const (
	// MissingDependentObjectsReason: the Cluster names objects that are not there.
	MissingDependentObjectsReason FailureReason = "MissingDependentObjects"
	// ManagementClusterRefInvalidReason: managementCluster names a cluster that is not here, or is none of management.
	ManagementClusterRefInvalidReason FailureReason = "ManagementClusterRefInvalid"
	// ClusterInvalidReason: the Cluster breaks a rule.
	ClusterInvalidReason FailureReason = "ClusterInvalid"
	// DatacenterConfigInvalidReason: the datacenter breaks a rule.
	DatacenterConfigInvalidReason FailureReason = "DatacenterConfigInvalid"
	// MachineConfigInvalidReason: a machine config breaks a rule.
	MachineConfigInvalidReason FailureReason = "MachineConfigInvalid"
	// UnavailableControlPlaneIPReason: the endpoint's address is in use.
	UnavailableControlPlaneIPReason FailureReason = "UnavailableControlPlaneIP"
	// EksaVersionInvalidReason: the version is not one that the management cluster can serve.
	EksaVersionInvalidReason FailureReason = "EksaVersionInvalid"
	// MachineInvalidReason: the machines that are asked for can't be had.
	MachineInvalidReason FailureReason = "MachineInvalid"

	// Reasons that are kept, and never given.
	FailureDomainInvalidReason                         FailureReason = "FailureDomainInvalid"
	BundleNotFoundForClusterReason                     FailureReason = "BundleNotFoundForCluster"
	ExtendedKubernetesVersionSupportNotSupportedReason FailureReason = "ExtendedKubernetesVersionSupportNotSupported"
	HardwareInvalidReason                              FailureReason = "HardwareInvalid"
)
