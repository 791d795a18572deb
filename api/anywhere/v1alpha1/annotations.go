package v1alpha1

// SystemNamespace is where all Cluster API objects and all credentials of infrastructure are, whatever namespace a Cluster is in.
const SystemNamespace = "eksa-system"

// ClusterFinalizer stays on a Cluster until its machines and addresses are gone.
const ClusterFinalizer = "clusters.anywhere.eks.amazonaws.com/finalizer"

// FieldManagerCLI owns the fields that the command line applies.
const FieldManagerCLI = "eks-a-cli"

// Annotations of a Cluster and of the objects that it names. Those that switch something on do so with the value "true".
const (
	// PausedAnnotation stops all work on a Cluster, and lets what is otherwise immutable be changed.
	PausedAnnotation = "anywhere.eks.amazonaws.com/paused"
	// ManagedByCLIAnnotation says that a command is at work, which lets a management cluster be created and deleted.
	ManagedByCLIAnnotation = "anywhere.eks.amazonaws.com/managed-by-cli"
	// ManagedByAnnotation names the management cluster of a workload cluster's objects.
	ManagedByAnnotation = "anywhere.eks.amazonaws.com/managed-by"
	// AllowDeleteWhenPausedAnnotation lets a Cluster that is paused be deleted.
	AllowDeleteWhenPausedAnnotation = "anywhere.eks.amazonaws.com/allow-delete-when-paused"
	// ManagementComponentsVersionAnnotation is the version of what runs on the management cluster.
	ManagementComponentsVersionAnnotation = "anywhere.eks.amazonaws.com/management-components-version"
	// SkipIPCheckAnnotation creates a cluster even if something answers at its endpoint.
	SkipIPCheckAnnotation = "anywhere.eks.amazonaws.com/skip-ip-check"
	// SkipVersionSkewCheckAnnotation lets spec.eksaVersion jump.
	SkipVersionSkewCheckAnnotation = "anywhere.eks.amazonaws.com/skip-eksa-version-skew-check"
	// ControlPlaneAnnotation marks the machine config of the control plane.
	ControlPlaneAnnotation = "anywhere.eks.amazonaws.com/control-plane"
	// EtcdAnnotation marks the machine config of external etcd.
	EtcdAnnotation = "anywhere.eks.amazonaws.com/etcd"
	// TinkerbellBootstrapIPAnnotation is kept, and has no effect.
	TinkerbellBootstrapIPAnnotation = "anywhere.eks.amazonaws.com/tinkerbell-bootstrap-ip"
	// TraceAnnotation holds the trace that the stages of a Cluster belong to, in the format of the traceparent header.
	// Commands set it.
	TraceAnnotation = "drover.dev/traceparent"
)

// Labels on all that is made for a Cluster.
const (
	ClusterNameLabel      = "clusters.anywhere.eks.amazonaws.com/cluster-name"
	ClusterNamespaceLabel = "clusters.anywhere.eks.amazonaws.com/cluster-namespace"
)

// What an administrator says about a Secret in SystemNamespace.
const (
	// CredentialsLabel says with the value "true" that machines may be had with what is in a Secret.
	CredentialsLabel = "clusters.anywhere.eks.amazonaws.com/credentials"
	// CredentialsNamespacesAnnotation names the namespaces whose clusters may use it, separated by commas. Without it all may.
	CredentialsNamespacesAnnotation = "clusters.anywhere.eks.amazonaws.com/credentials-namespaces"
)

// Names of Secrets in SystemNamespace that hold credentials.
const (
	// LocalCredentials are those of the local machines that a DockerDatacenterConfig stands for.
	LocalCredentials = "local-metal"
	// DefaultPacketCredentials are those of a PacketDatacenterConfig that does not name any.
	DefaultPacketCredentials = "packet-credentials"
	// RegistryCredentials are those of a registry mirror that asks for them.
	RegistryCredentials = "registry-credentials"
)
