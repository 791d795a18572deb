package spec

import (
	"path"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// Defaults of a spec.
const (
	DefaultPodCIDR      = "192.168.0.0/16"
	DefaultServiceCIDR  = "10.96.0.0/12"
	DefaultWorkerGroup  = "md-0"
	DefaultMirrorPort   = "443"
	DefaultNamespace    = "default"
	DefaultBillingCycle = "hourly"
	DefaultFluxBranch   = "main"
	DefaultFluxSystem   = "flux-system"
	DefaultSSHAlgorithm = "ecdsa"
	// DefaultKMSCacheSize and DefaultKMSTimeout apply to a key management service.
	DefaultKMSCacheSize = 1000
	DefaultKMSTimeout   = 3 * time.Second
)

// Default sets the defaults of a spec. It keeps every value that is set, even an invalid one, and
// is idempotent.
func Default(c *Config) {
	if c.Cluster == nil {
		return
	}
	DefaultCluster(c.Cluster)
	if c.Packet != nil {
		defaultPacket(c.Packet)
	}
	for _, m := range c.Machines {
		fill(&m.Spec.BillingCycle, DefaultBillingCycle)
	}
	if c.Flux != nil {
		defaultFlux(&c.Flux.Spec, c.Cluster)
	}
	if c.GitOps != nil {
		defaultGitOps(&c.GitOps.Spec.Flux.Github, c.Cluster)
	}
	for _, o := range c.Objects() {
		defaultMeta(o, c.Cluster)
	}
}

// DefaultCluster sets the defaults of a Cluster.
func DefaultCluster(c *anywherev1.Cluster) {
	defaultMeta(c, c)
	if c.IsSelfManaged() {
		fill(&c.Spec.ManagementCluster.Name, c.Name)
	}
	defaultControlPlane(&c.Spec.ControlPlaneConfiguration)
	for i := range c.Spec.WorkerNodeGroupConfigurations {
		defaultGroup(&c.Spec.WorkerNodeGroupConfigurations[i])
	}
	if groups := c.Spec.WorkerNodeGroupConfigurations; len(groups) > 0 {
		fill(&groups[0].Name, DefaultWorkerGroup)
	}
	defaultNetwork(&c.Spec.ClusterNetwork)
	if m := c.Spec.RegistryMirrorConfiguration; m != nil {
		fill(&m.Port, DefaultMirrorPort)
	}
	for _, e := range c.Spec.EtcdEncryption {
		defaultProviders(e.Providers)
	}
}

// defaultMeta sets the type of an object, which is empty in objects from an API server, and the
// namespace of its Cluster.
func defaultMeta(o client.Object, c *anywherev1.Cluster) {
	o.GetObjectKind().SetGroupVersionKind(anywherev1.GroupVersion.WithKind(kindOf(o)))
	fill(&c.Namespace, DefaultNamespace)
	if o.GetNamespace() == "" {
		o.SetNamespace(c.Namespace)
	}
}

func defaultControlPlane(p *anywherev1.ControlPlaneConfiguration) {
	if p.UpgradeRolloutStrategy != nil {
		fill(&p.UpgradeRolloutStrategy.Type, anywherev1.RollingUpdateStrategyType)
	}
}

func defaultGroup(g *anywherev1.WorkerNodeGroupConfiguration) {
	if g.Count == nil && g.AutoScalingConfiguration != nil {
		g.Count = ptr.To(g.AutoScalingConfiguration.MinCount)
	}
	if g.Count == nil {
		g.Count = ptr.To(1)
	}
	if g.UpgradeRolloutStrategy != nil {
		fill(&g.UpgradeRolloutStrategy.Type, anywherev1.RollingUpdateStrategyType)
	}
}

// defaultNetwork also converts the deprecated field cni, unless both fields are set, which a rule
// rejects.
func defaultNetwork(n *anywherev1.ClusterNetwork) {
	if len(n.Pods.CidrBlocks) == 0 {
		n.Pods.CidrBlocks = []string{DefaultPodCIDR}
	}
	if len(n.Services.CidrBlocks) == 0 {
		n.Services.CidrBlocks = []string{DefaultServiceCIDR}
	}
	if n.CNIConfig != nil {
		return
	}
	switch n.CNI {
	case "", anywherev1.CiliumCNI:
		n.CNIConfig = &anywherev1.CNIConfig{Cilium: &anywherev1.CiliumConfig{}}
	case anywherev1.KindnetdCNI:
		n.CNIConfig = &anywherev1.CNIConfig{Kindnetd: &anywherev1.KindnetdConfig{}}
	default:
		return
	}
	n.CNI = ""
}

func defaultProviders(providers []anywherev1.EtcdEncryptionProvider) {
	for i := range providers {
		kms := providers[i].KMS
		if kms == nil {
			continue
		}
		if kms.CacheSize == nil {
			kms.CacheSize = ptr.To[int32](DefaultKMSCacheSize)
		}
		if kms.Timeout == nil {
			kms.Timeout = &metav1.Duration{Duration: DefaultKMSTimeout}
		}
	}
}

func defaultPacket(d *anywherev1.PacketDatacenterConfig) {
	if d.Spec.CredentialsRef == nil {
		d.Spec.CredentialsRef = &anywherev1.CredentialsRef{}
	}
	fill(&d.Spec.CredentialsRef.Name, anywherev1.DefaultPacketCredentials)
}

func defaultFlux(s *anywherev1.FluxConfigSpec, c *anywherev1.Cluster) {
	*s = DefaultFlux(*s)
	fill(&s.ClusterConfigPath, gitFolder(c))
}

// DefaultFlux returns a repository with the defaults that don't depend on a cluster, so that
// FluxConfigs which leave them out are the same.
func DefaultFlux(s anywherev1.FluxConfigSpec) anywherev1.FluxConfigSpec {
	out := *s.DeepCopy()
	fill(&out.SystemNamespace, DefaultFluxSystem)
	fill(&out.Branch, DefaultFluxBranch)
	if out.Git != nil {
		fill(&out.Git.SSHKeyAlgorithm, DefaultSSHAlgorithm)
	}
	return out
}

func defaultGitOps(g *anywherev1.Github, c *anywherev1.Cluster) {
	fill(&g.FluxSystemNamespace, DefaultFluxSystem)
	fill(&g.Branch, DefaultFluxBranch)
	fill(&g.ClusterConfigPath, gitFolder(c))
}

// gitFolder returns the directory of the management cluster of c, or the empty string if that is
// not known.
func gitFolder(c *anywherev1.Cluster) string {
	if c.ManagedBy() == "" {
		return ""
	}
	return path.Join("clusters", c.ManagedBy())
}

// fill sets an empty field.
func fill[S ~string](field *S, value S) {
	if *field == "" {
		*field = value
	}
}
