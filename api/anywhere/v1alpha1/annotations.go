package v1alpha1

// SystemNamespace contains the Cluster API objects of all Clusters and the credentials of
// infrastructure.
const SystemNamespace = "eksa-system"

// ClusterFinalizer remains on a Cluster until its machines and addresses are deleted.
const ClusterFinalizer = "clusters.anywhere.eks.amazonaws.com/finalizer"

// FieldManagerCLI owns the fields that commands apply.
const FieldManagerCLI = "eks-a-cli"

// Annotations of a Cluster and its configs. Switches are enabled by the value "true".
const (
	// PausedAnnotation pauses the reconciliation of a Cluster, and makes immutable fields mutable.
	PausedAnnotation = "anywhere.eks.amazonaws.com/paused"
	// ManagedByCLIAnnotation marks the operation of a command, which may create and delete a
	// management cluster.
	ManagedByCLIAnnotation = "anywhere.eks.amazonaws.com/managed-by-cli"
	// ManagedByAnnotation names the management cluster of the configs of a workload cluster.
	ManagedByAnnotation = "anywhere.eks.amazonaws.com/managed-by"
	// AllowDeleteWhenPausedAnnotation allows a paused Cluster to be deleted.
	AllowDeleteWhenPausedAnnotation = "anywhere.eks.amazonaws.com/allow-delete-when-paused"
	// ManagementComponentsVersionAnnotation is the version of the components on the management
	// cluster.
	ManagementComponentsVersionAnnotation = "anywhere.eks.amazonaws.com/management-components-version"
	// SkipIPCheckAnnotation disables the check that the endpoint is unused.
	SkipIPCheckAnnotation = "anywhere.eks.amazonaws.com/skip-ip-check"
	// SkipVersionSkewCheckAnnotation disables the rules for changes of spec.eksaVersion.
	SkipVersionSkewCheckAnnotation = "anywhere.eks.amazonaws.com/skip-eksa-version-skew-check"
	// SkipAddOnWaitAnnotation has the Kubernetes version, such as 1.36, that the Cluster is upgraded
	// to without waiting for add-ons. Later upgrades wait again.
	SkipAddOnWaitAnnotation = "drover.dev/skip-add-on-wait"
	// AddOnWaitTimeoutAnnotation is how long an upgrade waits for the add-ons of a stage before it
	// reports that they take too long, such as 45m. It keeps waiting.
	AddOnWaitTimeoutAnnotation = "drover.dev/add-on-wait-timeout"
	// CiliumValuesAnnotation, on a Cluster of Cluster API, has the settings of Cilium in the spec, as
	// values for its chart in JSON, if the user installs it.
	CiliumValuesAnnotation = "drover.dev/cilium-values"
	// ControlPlaneAnnotation marks the machine config of the control plane.
	ControlPlaneAnnotation = "anywhere.eks.amazonaws.com/control-plane"
	// EtcdAnnotation marks the machine config of external etcd.
	EtcdAnnotation = "anywhere.eks.amazonaws.com/etcd"
	// TinkerbellBootstrapIPAnnotation has no effect.
	TinkerbellBootstrapIPAnnotation = "anywhere.eks.amazonaws.com/tinkerbell-bootstrap-ip"
	// TraceAnnotation holds the trace that the stages of a Cluster belong to, in the format of the
	// traceparent header. Commands set it.
	TraceAnnotation = "drover.dev/traceparent"
	// CapacityCheckAnnotation has the machines that a command asks for, in JSON. The webhook reads it
	// in a dry run, where the objects that a Cluster references need not exist, and removes it
	// otherwise.
	CapacityCheckAnnotation = "drover.dev/capacity-check"
	// CreationAnnotation has the identity of the command run that created an object. Cleaning up after
	// an unfinished run deletes only what has its identity; the next upgrade removes the annotation.
	CreationAnnotation = "drover.dev/creation"
	// ClusterUIDAnnotation identifies the Cluster that an object belongs to by the UID that the
	// Cluster had when it was created. On the Cluster itself the webhook sets it, so that a move
	// keeps it, and only administrators can bring another one along.
	ClusterUIDAnnotation = "drover.dev/cluster-uid"
	// AdministeredAnnotation with the value "true" marks a Cluster that an administrator created,
	// and the objects of such Clusters and of management clusters. The webhook sets it.
	AdministeredAnnotation = "drover.dev/administered"
)

// Annotations of a Cluster that request new certificates: a time such as "2026-05-01T12:00:00Z".
// Machines whose certificates were issued before are replaced one at a time. A request stays on the
// Cluster after it is complete, so the same one can be in Git.
const (
	// RenewControlPlaneAnnotation is about the machines of the control plane.
	RenewControlPlaneAnnotation = "clusters.drover.dev/renew-control-plane-certificates"
	// RenewEtcdAnnotation is about the machines of external etcd.
	RenewEtcdAnnotation = "clusters.drover.dev/renew-etcd-certificates"
)

// EncryptionSecret returns the name of the Secret in SystemNamespace that holds the keys with which
// a cluster encrypts its Secrets.
func EncryptionSecret(cluster string) string { return cluster + "-encryption" }

// Annotations of that Secret. None of them is secret.
const (
	// EncryptionStageAnnotation is the stage of the current rotation, or EncryptionSettled.
	EncryptionStageAnnotation = "clusters.drover.dev/encryption-stage"
	// EncryptionRotateAnnotation requests a rotation: any value that was not requested before.
	EncryptionRotateAnnotation = "clusters.drover.dev/rotate-encryption"
	// EncryptionRotationAnnotation is the last request for which a rotation was begun.
	EncryptionRotationAnnotation = "clusters.drover.dev/encryption-rotation"
	// EncryptionProblemAnnotation is why Secrets can't be encrypted with the new key, if they can't.
	EncryptionProblemAnnotation = "clusters.drover.dev/encryption-problem"
	// EncryptionSettled is the stage in which one key is in use.
	EncryptionSettled = "Settled"
)

// Labels of all objects of a Cluster.
const (
	ClusterNameLabel      = "clusters.anywhere.eks.amazonaws.com/cluster-name"
	ClusterNamespaceLabel = "clusters.anywhere.eks.amazonaws.com/cluster-namespace"
)

// Metadata that administrators set on Secrets in SystemNamespace.
const (
	// CredentialsLabel with the value "true" marks a Secret as credentials for machines.
	CredentialsLabel = "clusters.anywhere.eks.amazonaws.com/credentials"
	// CredentialsNamespacesAnnotation lists the namespaces whose clusters may use it, separated by
	// commas. Without it, all may use credentials for machines, except for LocalCredentials, which
	// are then for administrators only, and none registry credentials.
	CredentialsNamespacesAnnotation = "clusters.anywhere.eks.amazonaws.com/credentials-namespaces"
	// AllNamespaces in that list stands for all namespaces.
	AllNamespaces = "*"
	// CredentialsEndpointsAnnotation lists the hosts that RegistryCredentials may be sent to,
	// separated by commas, with a port unless that is 443.
	CredentialsEndpointsAnnotation = "clusters.anywhere.eks.amazonaws.com/credentials-endpoints"
)

// Names of Secrets in SystemNamespace that hold credentials.
const (
	// LocalCredentials are the credentials of local machines.
	LocalCredentials = "local-metal"
	// DefaultPacketCredentials are the default credentials of a PacketDatacenterConfig.
	DefaultPacketCredentials = "packet-credentials"
	// RegistryCredentials are the credentials of a registry mirror.
	RegistryCredentials = "registry-credentials"
)

// GitCredentials is the Secret with the credentials of the Git repository, in the namespace of Flux
// and in the form that Flux reads. Creators can't read it.
const GitCredentials = "flux-system"

// Metadata of GitOps.
const (
	// GitURLAnnotation, on GitCredentials, is the URL of the only repository that they may be sent
	// to. CredentialsNamespacesAnnotation lists the namespaces that the repository is open to; without
	// it, none.
	GitURLAnnotation = "gitops.drover.dev/url"
	// GitPathsAnnotation, on GitCredentials, lists the directories that FluxConfigs may name,
	// separated by commas. Without it, that is the default directory of the management cluster.
	GitPathsAnnotation = "gitops.drover.dev/paths"
	// GitForgeAnnotation, on GitCredentials, is the kind of the forge that commit statuses are sent
	// to: github, gitlab or gitea. It is needed only if the host of the repository doesn't tell.
	GitForgeAnnotation = "gitops.drover.dev/forge"
	// GitForgeURLAnnotation is the root of the API of the forge, if it isn't at the usual path of the
	// host of the repository.
	GitForgeURLAnnotation = "gitops.drover.dev/forge-url"
	// GitRemovalAnnotation, with the value "confirmed" on a Cluster, confirms that it is to be deleted
	// although it is ready, because its files were removed from Git.
	GitRemovalAnnotation = "gitops.drover.dev/removal"
	// GitClusterLabel, on a Kustomization of Flux, is the name of the Cluster in its namespace.
	GitClusterLabel = "gitops.drover.dev/cluster"
	// GitSourceAnnotation of a Kustomization is the namespace and the name of the GitRepository that
	// it is from, because its source may be an ExternalArtifact.
	GitSourceAnnotation = "gitops.drover.dev/source"
	// GitAccount is the service account with which Flux applies the clusters of a namespace.
	GitAccount = "drover-gitops"
)
