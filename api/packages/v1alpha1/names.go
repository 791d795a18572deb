package v1alpha1

// Namespaces on the management cluster.
const (
	// Namespace contains bundles, PackageBundleControllers, and Packages whose name starts with the
	// name of their cluster.
	Namespace = "eksa-packages"
	// NamespacePrefix is followed by the name of a cluster in the namespace of its Packages.
	NamespacePrefix = Namespace + "-"
	// KubeconfigNamespace is searched for a Cluster before all other namespaces.
	KubeconfigNamespace = "eksa-system"
)

// MirrorCredentials is the Secret with the credentials of a registry mirror, in the namespaces of
// packages.
const MirrorCredentials = "registry-mirror-cred"

// Finalizers, labels and annotations.
const (
	// PackageFinalizer keeps a Package until it is uninstalled from its cluster.
	PackageFinalizer = "packages.eks.amazonaws.com/package"
	// ControllerFinalizer keeps a PackageBundleController until the credentials that were copied to
	// its cluster are deleted.
	ControllerFinalizer = "packages.eks.amazonaws.com/packagebundlecontroller"
	// PackageLabel is the name of the Package of a HelmReleaseProxy.
	PackageLabel = "packages.eks.amazonaws.com/package"
	// InternalAnnotation exempts a Package from validation if it is "true".
	InternalAnnotation = "anywhere.eks.aws.com/internal"
	// SignatureAnnotation is the ECDSA signature of a bundle: ASN.1, base64.
	SignatureAnnotation = "eksa.aws.com/signature"
	// ExcludesAnnotation lists the paths that the signature excludes, one per line, in base64.
	ExcludesAnnotation = "eksa.aws.com/excludes"
	// IncludesAnnotation is signed and has no other effect.
	IncludesAnnotation = "eksa.aws.com/includes"
	// DownloadedAnnotation is the source of a downloaded bundle. Only downloaded bundles are
	// pruned.
	DownloadedAnnotation = "packages.eks.amazonaws.com/downloaded-from"
	// DependentsAnnotation lists the Packages that a dependency was created for, separated by
	// commas. The dependency is deleted with the last of them.
	DependentsAnnotation = "packages.eks.amazonaws.com/made-for"
	// AbandonAnnotation abandons the release of a deleted Package on an unreachable cluster if it
	// is "true".
	AbandonAnnotation = "packages.eks.amazonaws.com/abandon"
)

// LatestVersion as packageVersion follows the bundle. It is the default.
const LatestVersion = "latest"

// Ready summarizes the other conditions of each kind.
const Ready = "Ready"

// Conditions of a Package.
const (
	// TargetFound is True if the cluster of the Package is known.
	TargetFound = "TargetFound"

	// TargetKnownReason: the cluster is known.
	TargetKnownReason = "Known"
	// TargetUnknownReason: no PackageBundleController or no Cluster has the name.
	TargetUnknownReason = "Unknown"
	// TargetAmbiguousReason: several Clusters could be meant.
	TargetAmbiguousReason = "Ambiguous"
	// TargetDeniedReason: the namespace or the PackageBundleController was not made for the Cluster.
	TargetDeniedReason = "Denied"
	// NamespaceInvalidReason: the namespace is not one for Packages.
	NamespaceInvalidReason = "NamespaceInvalid"

	// SourceFound is True if the active bundle contains the version of the package and accepts its
	// config.
	SourceFound = "SourceFound"

	// SourceKnownReason: the active bundle contains the version.
	SourceKnownReason = "Found"
	// NoActiveBundleReason: the cluster has no active bundle, or the bundle doesn't exist.
	NoActiveBundleReason = "NoActiveBundle"
	// BundleRefusedReason: the signature of the bundle is invalid, or it requires a newer Drover.
	BundleRefusedReason = "BundleRefused"
	// NotInBundleReason: the bundle doesn't contain the package or the version.
	NotInBundleReason = "NotInBundle"
	// ConfigInvalidReason: the config is not valid YAML or doesn't match the schema.
	ConfigInvalidReason = "ConfigInvalid"

	// DependenciesReady is True if all dependencies are installed.
	DependenciesReady = "DependenciesReady"

	// DependenciesInstalledReason: all dependencies are installed.
	DependenciesInstalledReason = "Installed"
	// DependenciesPendingReason: some dependencies are not installed yet.
	DependenciesPendingReason = "Pending"
	// DependenciesInvalidReason: the bundle lacks a dependency, the dependencies form a cycle, or
	// one can't be created.
	DependenciesInvalidReason = "Invalid"

	// Installed is True if the release is installed and its objects are ready.
	Installed = "Installed"

	// InstalledReason: the release is installed and ready.
	InstalledReason = "Installed"
	// InstallingReason: the release is being installed or upgraded.
	InstallingReason = "Installing"
	// InstallFailedReason: the installation failed. It is retried if a retry may succeed.
	InstallFailedReason = "Failed"
	// UninstallingReason: the release is being uninstalled.
	UninstallingReason = "Uninstalling"
	// AbandonedReason: the cluster stayed unreachable, and the release was left on it.
	AbandonedReason = "Abandoned"
)

// Conditions of a PackageBundleController.
const (
	// ClusterReachable is True if the cluster exists and responds.
	ClusterReachable = "ClusterReachable"

	// ReachableReason: the cluster or the registry responds.
	ReachableReason = "Reachable"
	// UnreachableReason: the cluster or the registry doesn't respond.
	UnreachableReason = "Unreachable"

	// RegistryReachable is True if the last check for bundles succeeded.
	RegistryReachable = "RegistryReachable"

	// BundleActive is True if the active bundle exists and can be used.
	BundleActive = "BundleActive"

	// ActiveReason: the active bundle can be used.
	ActiveReason = "Active"
	// NotPresentReason: the bundle doesn't exist.
	NotPresentReason = "NotPresent"
	// VersionMismatchReason: the bundle is for another version of Kubernetes.
	VersionMismatchReason = "VersionMismatch"
)

// CredentialsSynced is True if the credentials of the registry mirror were copied to all namespaces
// with packages. Only PackageBundleControllers with a registry mirror have it.
const (
	CredentialsSynced = "CredentialsSynced"

	// SyncedReason: all copies are up to date.
	SyncedReason = "Synced"
	// SyncPendingReason: some copies are missing or outdated.
	SyncPendingReason = "Pending"
	// SyncFailedReason: the credentials are invalid, or copying them failed.
	SyncFailedReason = "Failed"
	// NotBoundReason: an administrator has bound shared credentials to no namespaces, so that no
	// cluster gets them.
	NotBoundReason = "NotBound"
)

// Conditions of a PackageBundle.
const (
	// SignatureValid is True if the bundle was signed with a trusted key.
	SignatureValid = "SignatureValid"

	// SignatureGoodReason: the bundle was signed with a trusted key.
	SignatureGoodReason = "Valid"
	// SignatureBadReason: the signature is missing or invalid, or its key is not trusted.
	SignatureBadReason = "Invalid"

	// Compatible is True if this version of Drover can use the bundle.
	Compatible = "Compatible"

	// CompatibleReason: this version of Drover can use the bundle.
	CompatibleReason = "Compatible"
	// UpgradeRequiredReason: the bundle requires a newer version of Drover.
	UpgradeRequiredReason = "ControllerUpgradeRequired"
)
