package v1alpha1

// Conditions of a Cluster.
const (
	// Ready is the summary of the other conditions.
	Ready = "Ready"
	// ControlPlaneInitialized means that an API server has been available. It never becomes False
	// again.
	ControlPlaneInitialized = "ControlPlaneInitialized"
	// ControlPlaneReady means that all control plane machines exist and are up to date and healthy.
	ControlPlaneReady = "ControlPlaneReady"
	// WorkersReady means that all workers exist and are up to date and healthy.
	WorkersReady = "WorkersReady"
	// DefaultCNIConfigured means that the Pod network is installed.
	DefaultCNIConfigured = "DefaultCNIConfigured"
	// EtcdReady means that external etcd matches the spec and all its members are healthy. Clusters
	// without external etcd don't have it.
	EtcdReady = "EtcdReady"
	// PackagesEnabled is False if the namespace of packages can't be used. Otherwise it is absent,
	// and Ready does not depend on it.
	PackagesEnabled = "PackagesEnabled"
	// CapacityReserved is False while a new Cluster waits for machines or for its namespace's quota.
	// Otherwise it is absent.
	CapacityReserved = "CapacityReserved"
	// SecretsEncrypted means that all Secrets in etcd are encrypted with the current key of the
	// cluster. Clusters without a key of their own don't have it.
	SecretsEncrypted = "SecretsEncrypted"
	// CertificatesCurrent means that all certificates were issued since the last request for new
	// ones. Clusters without such a request don't have it.
	CertificatesCurrent = "CertificatesCurrent"
	// KubernetesUpgraded is False while the Kubernetes version is upgraded. Clusters that were never
	// upgraded don't have it.
	KubernetesUpgraded = "KubernetesUpgraded"
	// DroverUpToDate means that a management cluster runs the version in spec.droverVersion. Without
	// one, it is absent. Ready does not depend on it.
	DroverUpToDate = "DroverUpToDate"
)

// Reasons of conditions that are False, or Unknown.
const (
	// OutdatedInformationReason: the status is older than the spec.
	OutdatedInformationReason = "OutdatedInformation"
	// WaitingForCapacityReason: there are not enough machines; Drover continues when there are.
	WaitingForCapacityReason = "WaitingForCapacity"
	// WaitingForAddOnsReason: a Kubernetes upgrade waits until add-ons are ready for the new version.
	WaitingForAddOnsReason = "WaitingForAddOns"
	// AddOnsTimedOutReason: it has waited for longer than the timeout, and keeps waiting.
	AddOnsTimedOutReason = "AddOnsTimedOut"
	// WaitingForQuotaReason: the quota of the namespace is exhausted; Drover continues when it is
	// not.
	WaitingForQuotaReason = "WaitingForQuota"
	// ControlPlaneInitializationInProgressReason: the first control plane machine is being created.
	ControlPlaneInitializationInProgressReason = "ControlPlaneInitializationInProgress"
	// ControlPlaneNotReadyReason: workers or the Pod network wait for the control plane.
	ControlPlaneNotReadyReason = "ControlPlaneNotReady"
	// ControlPlaneNotInitializedReason: workers or the Pod network wait for the first control plane
	// machine.
	ControlPlaneNotInitializedReason = "ControlPlaneNotInitialized"
	// NodesNotReadyReason: some nodes are not ready.
	NodesNotReadyReason = "NodesNotReady"
	// ControlPlaneComponentsUnhealthyReason: a component of the control plane, such as etcd, is
	// unhealthy.
	ControlPlaneComponentsUnhealthyReason = "ControlPlaneComponentsUnhealthy"
	// ScalingUpReason: machines are being added.
	ScalingUpReason = "ScalingUp"
	// ScalingDownReason: machines are being deleted.
	ScalingDownReason = "ScalingDown"
	// RollingUpgradeInProgressReason: machines are being replaced.
	RollingUpgradeInProgressReason = "RollingUpgradeInProgress"
	// InPlaceUpgradeInProgressReason: machines are being upgraded in place.
	InPlaceUpgradeInProgressReason = "InPlaceUpgradeInProgress"
	// ExternalEtcdNotAvailableReason: the control plane waits for external etcd.
	ExternalEtcdNotAvailableReason = "ExternalEtcdNotAvailable"
	// AutoscalerConstraintNotMetReason: the size of a group is outside its bounds.
	AutoscalerConstraintNotMetReason = "AutoscalerConstraintNotMet"
	// KubeadmControlPlaneNotReadyReason: the KubeadmControlPlane is not ready.
	KubeadmControlPlaneNotReadyReason = "KubeadmControlPlaneNotReady"
	// MachineDeploymentNotReadyReason: a MachineDeployment is not ready.
	MachineDeploymentNotReadyReason = "MachineDeploymentNotReady"
	// DefaultCNIUpgradeInProgressReason: the Pod network is being installed or upgraded.
	DefaultCNIUpgradeInProgressReason = "DefaultCNIUpgradeInProgressReason"
	// SkipUpgradesForDefaultCNIConfiguredReason: the user manages the Pod network.
	SkipUpgradesForDefaultCNIConfiguredReason = "SkipUpgradesForDefaultCNIConfigured"
	// NamespaceNotOwnedReason: the namespace of packages was not created for this Cluster.
	NamespaceNotOwnedReason = "NamespaceNotOwned"
	// NamespaceTerminatingReason: the namespace of packages of a deleted Cluster still exists.
	NamespaceTerminatingReason = "NamespaceTerminating"
	// EncryptionKeyChangingReason: an encryption key is being introduced or replaced.
	EncryptionKeyChangingReason = "EncryptionKeyChanging"
	// CertificatesRenewingReason: machines are replaced because somebody requested new certificates.
	CertificatesRenewingReason = "CertificatesRenewing"
	// DroverUpgradeRequiredReason: somebody must run a command to upgrade or install Drover.
	DroverUpgradeRequiredReason = "DroverUpgradeRequired"
	// FailedReason: the Cluster can't be reconciled; see status.failureReason and
	// status.failureMessage.
	FailedReason = "Failed"
	// PausedReason: the Cluster has PausedAnnotation.
	PausedReason = "Paused"
	// DeletingReason: the Cluster is being deleted.
	DeletingReason = "Deleting"
)

// Reasons of conditions that are True, because a reason is required.
const (
	// ReadyReason: all conditions are True.
	ReadyReason = "Ready"
	// InitializedReason: an API server has been available.
	InitializedReason = "Initialized"
	// EncryptedReason: all Secrets are encrypted with the current key.
	EncryptedReason = "Encrypted"
	// RenewedReason: all certificates were issued since the last request.
	RenewedReason = "Renewed"
	// UpToDateReason: Drover has the version that the spec names.
	UpToDateReason = "UpToDate"
	// ConfiguredReason: the Pod network is installed.
	ConfiguredReason = "Configured"
)

// Messages of conditions, some of them formats.
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

// FailureReason is the reason of an error that the user must correct.
type FailureReason string

// Failure reasons of a Cluster.
const (
	// MissingDependentObjectsReason: the Cluster references objects that do not exist.
	MissingDependentObjectsReason FailureReason = "MissingDependentObjects"
	// ManagementClusterRefInvalidReason: managementCluster names an unknown cluster or a workload
	// cluster.
	ManagementClusterRefInvalidReason FailureReason = "ManagementClusterRefInvalid"
	// ClusterInvalidReason: the Cluster violates a rule.
	ClusterInvalidReason FailureReason = "ClusterInvalid"
	// InPlaceUpgradeImpossibleReason: a change requires other machines, but they are upgraded in
	// place only. Nothing was changed.
	InPlaceUpgradeImpossibleReason FailureReason = "InPlaceUpgradeImpossible"
	// DatacenterConfigInvalidReason: the datacenter config violates a rule.
	DatacenterConfigInvalidReason FailureReason = "DatacenterConfigInvalid"
	// MachineConfigInvalidReason: a machine config violates a rule.
	MachineConfigInvalidReason FailureReason = "MachineConfigInvalid"
	// UnavailableControlPlaneIPReason: the address of the endpoint is in use.
	UnavailableControlPlaneIPReason FailureReason = "UnavailableControlPlaneIP"
	// EksaVersionInvalidReason: the management cluster does not support the version.
	EksaVersionInvalidReason FailureReason = "EksaVersionInvalid"
	// MachineInvalidReason: the machines are not available.
	MachineInvalidReason FailureReason = "MachineInvalid"

	// Reasons that are never set.
	FailureDomainInvalidReason                         FailureReason = "FailureDomainInvalid"
	BundleNotFoundForClusterReason                     FailureReason = "BundleNotFoundForCluster"
	ExtendedKubernetesVersionSupportNotSupportedReason FailureReason = "ExtendedKubernetesVersionSupportNotSupported"
	HardwareInvalidReason                              FailureReason = "HardwareInvalid"
)
