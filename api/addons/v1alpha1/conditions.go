package v1alpha1

// Finalizers, labels and annotations.
const (
	// HelmChartProxyFinalizer stays until all releases are gone.
	HelmChartProxyFinalizer = "helmchartproxy.addons.cluster.x-k8s.io"
	// HelmReleaseProxyFinalizer stays until the release is uninstalled.
	HelmReleaseProxyFinalizer = "helmreleaseproxy.addons.cluster.x-k8s.io"
	// HelmChartProxyLabel names the HelmChartProxy that a HelmReleaseProxy belongs to.
	HelmChartProxyLabel = "helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-name"
	// GeneratedNameAnnotation marks a generated release name.
	GeneratedNameAnnotation = "helmreleaseproxy.addons.cluster.x-k8s.io/is-release-name-generated"
	// InstalledAnnotation marks a release that was deployed once.
	InstalledAnnotation = "helmreleaseproxy.addons.cluster.x-k8s.io/release-successfully-installed"
	// StillValuesAnnotation is a digest of the values without random and time-dependent parts.
	// Values with the same digest are not written again.
	StillValuesAnnotation = "helmreleaseproxy.addons.cluster.x-k8s.io/still-values"
	// ResumeRolloutAnnotation on a HelmChartProxy resumes a paused rollout, once for each new
	// value.
	ResumeRolloutAnnotation = "addons.cluster.x-k8s.io/resume-rollout"
)

// Conditions of a HelmChartProxy. Ready, which both kinds have, summarizes the others.
const (
	// SpecsUpToDate reports whether every HelmReleaseProxy has the desired spec.
	SpecsUpToDate = "HelmReleaseProxySpecsUpToDate"

	// UpToDateReason: they all are.
	UpToDateReason = "UpToDate"
	// ClusterSelectionFailedReason: the selector is invalid, or clusters can't be listed.
	ClusterSelectionFailedReason = "ClusterSelectionFailed"
	// ValueParsingFailedReason: values can't be rendered for some clusters.
	ValueParsingFailedReason = "ValueParsingFailed"
	// CreationFailedReason: some HelmReleaseProxies can't be created or updated.
	CreationFailedReason = "HelmReleaseProxyCreationFailed"
	// DeletionFailedReason: some HelmReleaseProxies can't be deleted.
	DeletionFailedReason = "HelmReleaseProxyDeletionFailed"
	// ReinstallingReason: some releases are uninstalled to be reinstalled.
	ReinstallingReason = "HelmReleaseProxyReinstalling"
	// SpecsUpdatingReason: some HelmReleaseProxies have not been updated or observed yet.
	SpecsUpdatingReason = "HelmReleaseProxySpecsUpdating"

	// ProxiesReady summarizes the HelmReleaseProxies.
	ProxiesReady = "HelmReleaseProxiesReady"

	// RolloutCompleted reports the progress of a rollout in waves. It exists only if there is one.
	RolloutCompleted = "HelmReleaseProxiesRolloutCompleted"

	// RolloutCompleteReason: every cluster has the revision.
	RolloutCompleteReason = "Complete"
	// RolloutProgressingReason: the clusters of a wave get the revision.
	RolloutProgressingReason = "Progressing"
	// RolloutSoakingReason: a wave has the revision and must stay ready.
	RolloutSoakingReason = "Soaking"
	// RolloutPausedReason: too many clusters have failed, and the user must act.
	RolloutPausedReason = "Paused"
	// RolloutRollingBackReason: too many clusters have failed, and all return to the last good
	// revision.
	RolloutRollingBackReason = "RollingBack"
)

// Conditions of a HelmReleaseProxy.
const (
	// ClusterAvailable reports whether the cluster is reachable.
	ClusterAvailable = "ClusterAvailable"

	// AvailableReason: it can.
	AvailableReason = "Available"
	// NotAvailableReason: its control plane is not initialized, or it is unreachable.
	NotAvailableReason = "NotAvailable"
	// GetClusterFailedReason: the Cluster can't be read.
	GetClusterFailedReason = "GetClusterFailed"
	// GetKubeconfigFailedReason: the kubeconfig can't be used.
	GetKubeconfigFailedReason = "GetKubeconfigFailed"
	// AccessDeniedReason: the release may not use the Cluster, see serviceAccountName.
	AccessDeniedReason = "AccessDenied"
	// GetCredentialsFailedReason: the Secret with credentials can't be used.
	GetCredentialsFailedReason = "GetCredentialsFailed"
	// GetCACertificateFailedReason: the Secret with certificates can't be used.
	GetCACertificateFailedReason = "GetCACertificateFailed"

	// ReleaseReady reports whether the release is deployed, and its objects are ready if that is
	// waited for.
	ReleaseReady = "HelmReleaseReady"

	// ReadyReason: it is.
	ReadyReason = "Ready"
	// PreparingReason: the installation has not started yet.
	PreparingReason = "PreparingToHelmInstall"
	// PendingReason: an operation runs, or the objects are not ready yet.
	PendingReason = "HelmReleasePending"
	// InstallOrUpgradeFailedReason: an operation failed.
	InstallOrUpgradeFailedReason = "HelmInstallOrUpgradeFailed"
	// GetFailedReason: the release can't be read.
	GetFailedReason = "HelmReleaseGetFailed"
	// ReleaseDeletionFailedReason: the release can't be uninstalled.
	ReleaseDeletionFailedReason = "HelmReleaseDeletionFailed"
	// ReleaseDeletedReason: the release is gone.
	ReleaseDeletedReason = "HelmReleaseDeleted"
	// WaitingForDependenciesReason: dependencies are not ready on the cluster.
	WaitingForDependenciesReason = "WaitingForDependencies"
	// WaitingForClusterReason: the cluster is unreachable or busy.
	WaitingForClusterReason = "WaitingForCluster"

	// ReleaseExclusive reports that another HelmReleaseProxy has the same release. It exists only
	// then, on both.
	ReleaseExclusive = "HelmReleaseExclusive"

	// ReleaseClaimedReason: another HelmReleaseProxy has the same release. The older one keeps it.
	ReleaseClaimedReason = "HelmReleaseClaimed"

	// ReleaseInSync reports whether the objects are unchanged. It exists only if drift is detected.
	ReleaseInSync = "HelmReleaseInSync"

	// InSyncReason: they are.
	InSyncReason = "InSync"
	// DriftedReason: others have changed some objects.
	DriftedReason = "Drifted"
)
