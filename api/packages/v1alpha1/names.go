package v1alpha1

// Namespaces on the management cluster.
const (
	// Namespace is where bundles and their controllers are, and packages whose name begins with that of their cluster.
	Namespace = "eksa-packages"
	// NamespacePrefix and the name of a cluster are the namespace of that cluster's packages.
	NamespacePrefix = Namespace + "-"
	// KubeconfigNamespace is where a Cluster is looked for first.
	KubeconfigNamespace = "eksa-system"
)

// Finalizers, labels and annotations.
const (
	// PackageFinalizer stays until the package is gone from its cluster.
	PackageFinalizer = "packages.eks.amazonaws.com/package"
	// ControllerFinalizer stays until what a cluster was given for its packages is taken back.
	ControllerFinalizer = "packages.eks.amazonaws.com/packagebundlecontroller"
	// PackageLabel names the Package that a HelmReleaseProxy belongs to.
	PackageLabel = "packages.eks.amazonaws.com/package"
	// InternalAnnotation, if it is "true", keeps admission from looking at a Package.
	InternalAnnotation = "anywhere.eks.aws.com/internal"
	// SignatureAnnotation is the signature of a bundle: base64 of ASN.1 ECDSA.
	SignatureAnnotation = "eksa.aws.com/signature"
	// ExcludesAnnotation is base64 of the paths that the signature leaves out, one a line.
	ExcludesAnnotation = "eksa.aws.com/excludes"
	// IncludesAnnotation is part of what is signed, and nothing else.
	IncludesAnnotation = "eksa.aws.com/includes"
	// DownloadedAnnotation says where a bundle was found. Only such bundles are removed when nobody uses them.
	DownloadedAnnotation = "packages.eks.amazonaws.com/downloaded-from"
	// DependentsAnnotation names the packages that a package was made for, separated by commas. It goes with the last of them.
	DependentsAnnotation = "packages.eks.amazonaws.com/made-for"
	// AbandonAnnotation on a Package that is deleted, if it is "true", gives up on a cluster that does not come back.
	AbandonAnnotation = "packages.eks.amazonaws.com/abandon"
)

// LatestVersion is what packageVersion says, or leaves out, to follow the bundle.
const LatestVersion = "latest"

// Ready sums up the other conditions. All kinds have it.
const Ready = "Ready"

// Conditions of a Package.
const (
	// TargetFound says that it is known which cluster the package is for.
	TargetFound = "TargetFound"

	// TargetKnownReason: it is.
	TargetKnownReason = "Known"
	// TargetUnknownReason: no PackageBundleController, or no Cluster, has the name.
	TargetUnknownReason = "Unknown"
	// TargetAmbiguousReason: several Clusters have the name.
	TargetAmbiguousReason = "Ambiguous"
	// NamespaceInvalidReason: packages don't belong in this namespace.
	NamespaceInvalidReason = "NamespaceInvalid"

	// SourceFound says that the active bundle has the package, in the wanted version, and accepts its config.
	SourceFound = "SourceFound"

	// SourceKnownReason: it has.
	SourceKnownReason = "Found"
	// NoActiveBundleReason: the cluster has no active bundle, or the bundle is not here.
	NoActiveBundleReason = "NoActiveBundle"
	// BundleRefusedReason: the bundle's signature is not good, or it needs a later Drover.
	BundleRefusedReason = "BundleRefused"
	// NotInBundleReason: the package or the version is not in the bundle.
	NotInBundleReason = "NotInBundle"
	// ConfigInvalidReason: config is not YAML, or not what the schema asks for.
	ConfigInvalidReason = "ConfigInvalid"

	// DependenciesReady says that all packages that this one needs are installed.
	DependenciesReady = "DependenciesReady"

	// DependenciesInstalledReason: they are.
	DependenciesInstalledReason = "Installed"
	// DependenciesPendingReason: some are not yet.
	DependenciesPendingReason = "Pending"
	// DependenciesInvalidReason: the bundle does not have them, or they depend on each other in a circle.
	DependenciesInvalidReason = "Invalid"

	// Installed says that the release is on the cluster and its objects are ready.
	Installed = "Installed"

	// InstalledReason: it is.
	InstalledReason = "Installed"
	// InstallingReason: it is under way.
	InstallingReason = "Installing"
	// InstallFailedReason: it failed. It is tried again if that may help.
	InstallFailedReason = "Failed"
	// UninstallingReason: it is being removed.
	UninstallingReason = "Uninstalling"
	// AbandonedReason: the cluster never came back, and what is on it was given up.
	AbandonedReason = "Abandoned"
)

// Conditions of a PackageBundleController.
const (
	// ClusterReachable says that the cluster is here and answers.
	ClusterReachable = "ClusterReachable"

	// ReachableReason: it does.
	ReachableReason = "Reachable"
	// UnreachableReason: it does not.
	UnreachableReason = "Unreachable"

	// RegistryReachable says that bundles can be looked for.
	RegistryReachable = "RegistryReachable"

	// BundleActive says that the active bundle is here and can be used.
	BundleActive = "BundleActive"

	// ActiveReason: it is.
	ActiveReason = "Active"
	// NotPresentReason: it is not here.
	NotPresentReason = "NotPresent"
	// VersionMismatchReason: it is for another Kubernetes version than the cluster's.
	VersionMismatchReason = "VersionMismatch"
)

// CredentialsSynced, on a PackageBundleController, says that the credentials of its registry mirror are where packages need them. It is there
// if the cluster has such credentials.
const (
	CredentialsSynced = "CredentialsSynced"

	// SyncedReason: they are.
	SyncedReason = "Synced"
	// SyncPendingReason: they will be.
	SyncPendingReason = "Pending"
	// SyncFailedReason: they could not be copied, or can't be read.
	SyncFailedReason = "Failed"
)

// Conditions of a PackageBundle.
const (
	// SignatureValid says that a key that is trusted signed the bundle.
	SignatureValid = "SignatureValid"

	// SignatureGoodReason: one did.
	SignatureGoodReason = "Valid"
	// SignatureBadReason: none did.
	SignatureBadReason = "Invalid"

	// Compatible says that this Drover can use the bundle.
	Compatible = "Compatible"

	// CompatibleReason: it can.
	CompatibleReason = "Compatible"
	// UpgradeRequiredReason: it is too old.
	UpgradeRequiredReason = "ControllerUpgradeRequired"
)
