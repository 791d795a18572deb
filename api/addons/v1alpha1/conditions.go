package v1alpha1

// Finalizers, labels and annotations.
const (
	// HelmChartProxyFinalizer stays until all releases of the proxy are gone.
	HelmChartProxyFinalizer = "helmchartproxy.addons.cluster.x-k8s.io"
	// HelmReleaseProxyFinalizer stays until the release is gone from its cluster.
	HelmReleaseProxyFinalizer = "helmreleaseproxy.addons.cluster.x-k8s.io"
	// HelmChartProxyLabel names the HelmChartProxy that a HelmReleaseProxy belongs to.
	HelmChartProxyLabel = "helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-name"
	// GeneratedNameAnnotation says that the name of the release was made up.
	GeneratedNameAnnotation = "helmreleaseproxy.addons.cluster.x-k8s.io/is-release-name-generated"
	// InstalledAnnotation says that the release was deployed once.
	InstalledAnnotation = "helmreleaseproxy.addons.cluster.x-k8s.io/release-successfully-installed"
	// StillValuesAnnotation is a digest of the values with everything random or of the moment taken out. Values that differ in nothing
	// else are not written again.
	StillValuesAnnotation = "helmreleaseproxy.addons.cluster.x-k8s.io/still-values"
	// ResumeRolloutAnnotation on a HelmChartProxy resumes a paused rollout, once for each new value of it.
	ResumeRolloutAnnotation = "addons.cluster.x-k8s.io/resume-rollout"
)

// Conditions of a HelmChartProxy. Ready, which both kinds have, sums up the others.
const (
	// SpecsUpToDate says that every HelmReleaseProxy is as the HelmChartProxy wants it.
	SpecsUpToDate = "HelmReleaseProxySpecsUpToDate"

	// UpToDateReason: they all are.
	UpToDateReason = "UpToDate"
	// ClusterSelectionFailedReason: the selector can't be used, or the clusters not be listed.
	ClusterSelectionFailedReason = "ClusterSelectionFailed"
	// ValueParsingFailedReason: values can't be rendered for some clusters.
	ValueParsingFailedReason = "ValueParsingFailed"
	// CreationFailedReason: some HelmReleaseProxies can't be made or changed.
	CreationFailedReason = "HelmReleaseProxyCreationFailed"
	// DeletionFailedReason: some HelmReleaseProxies can't be deleted.
	DeletionFailedReason = "HelmReleaseProxyDeletionFailed"
	// ReinstallingReason: some releases are removed, to be installed anew.
	ReinstallingReason = "HelmReleaseProxyReinstalling"
	// SpecsUpdatingReason: some HelmReleaseProxies have not taken up their change yet.
	SpecsUpdatingReason = "HelmReleaseProxySpecsUpdating"

	// ProxiesReady sums up the HelmReleaseProxies.
	ProxiesReady = "HelmReleaseProxiesReady"

	// RolloutCompleted says how far a rollout in waves has come. It is there only if one is asked for.
	RolloutCompleted = "HelmReleaseProxiesRolloutCompleted"

	// RolloutCompleteReason: every cluster has it.
	RolloutCompleteReason = "Complete"
	// RolloutProgressingReason: the clusters of a wave get it.
	RolloutProgressingReason = "Progressing"
	// RolloutSoakingReason: a wave has it and is watched for a while.
	RolloutSoakingReason = "Soaking"
	// RolloutPausedReason: too many clusters have failed, and somebody has to look.
	RolloutPausedReason = "Paused"
	// RolloutRollingBackReason: too many clusters have failed, and all go back to what was good.
	RolloutRollingBackReason = "RollingBack"
)

// Conditions of a HelmReleaseProxy.
const (
	// ClusterAvailable says that the cluster can be worked on.
	ClusterAvailable = "ClusterAvailable"

	// AvailableReason: it can.
	AvailableReason = "Available"
	// NotAvailableReason: its control plane is not initialized, or it does not answer.
	NotAvailableReason = "NotAvailable"
	// GetClusterFailedReason: the Cluster can't be read.
	GetClusterFailedReason = "GetClusterFailed"
	// GetKubeconfigFailedReason: the way in can't be read.
	GetKubeconfigFailedReason = "GetKubeconfigFailed"
	// GetCredentialsFailedReason: the Secret with credentials can't be used.
	GetCredentialsFailedReason = "GetCredentialsFailed"
	// GetCACertificateFailedReason: the Secret with certificates can't be used.
	GetCACertificateFailedReason = "GetCACertificateFailed"

	// ReleaseReady says that the release is deployed, and that its objects are ready if that was asked for.
	ReleaseReady = "HelmReleaseReady"

	// ReadyReason: it is.
	ReadyReason = "Ready"
	// PreparingReason: nothing was done yet.
	PreparingReason = "PreparingToHelmInstall"
	// PendingReason: an operation runs, or its objects are not ready yet.
	PendingReason = "HelmReleasePending"
	// InstallOrUpgradeFailedReason: an operation failed.
	InstallOrUpgradeFailedReason = "HelmInstallOrUpgradeFailed"
	// GetFailedReason: the release can't be read.
	GetFailedReason = "HelmReleaseGetFailed"
	// ReleaseDeletionFailedReason: the release can't be uninstalled.
	ReleaseDeletionFailedReason = "HelmReleaseDeletionFailed"
	// ReleaseDeletedReason: the release is gone.
	ReleaseDeletedReason = "HelmReleaseDeleted"
	// WaitingForDependenciesReason: others that this depends on are not ready on the cluster.
	WaitingForDependenciesReason = "WaitingForDependencies"
	// WaitingForClusterReason: the cluster does not answer, or has too much to do.
	WaitingForClusterReason = "WaitingForCluster"

	// ReleaseExclusive says that no other HelmReleaseProxy has the same release. It is there only if one has, on both.
	ReleaseExclusive = "HelmReleaseExclusive"

	// ReleaseClaimedReason: another HelmReleaseProxy has the same release. The older one keeps it.
	ReleaseClaimedReason = "HelmReleaseClaimed"

	// ReleaseInSync says that the release's objects are as they were written. It is there only if drift is looked for.
	ReleaseInSync = "HelmReleaseInSync"

	// InSyncReason: they are.
	InSyncReason = "InSync"
	// DriftedReason: others have changed some of them.
	DriftedReason = "Drifted"
)
