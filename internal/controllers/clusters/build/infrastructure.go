package build

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/model/demand"
)

// Settings of local machines, which a DockerDatacenterConfig selects.
const (
	localOS      = "ubuntu_24_04"
	billingCycle = "hourly"
)

// infrastructure builds the Cluster and the PacketCluster.
func (b *builder) infrastructure() error {
	network := b.cluster.Spec.ClusterNetwork
	b.set.Cluster = &clusterv1.Cluster{
		ObjectMeta: b.meta(b.cluster.Name),
		Spec: clusterv1.ClusterSpec{
			ClusterNetwork: clusterv1.ClusterNetwork{
				Pods:     clusterv1.NetworkRanges{CIDRBlocks: slices.Clone(network.Pods.CidrBlocks)},
				Services: clusterv1.NetworkRanges{CIDRBlocks: slices.Clone(network.Services.CidrBlocks)},
			},
			InfrastructureRef: reference(infrav1.GroupVersion.Group, "PacketCluster", b.cluster.Name),
		},
	}
	if err := b.annotateCluster(); err != nil {
		return err
	}
	if b.set.ControlPlane != nil || b.Now.ControlPlane != nil {
		b.set.Cluster.Spec.ControlPlaneRef = ControlPlaneReference(b.cluster.Name)
	}
	spec := infrav1.PacketClusterSpec{ProjectID: b.Project, Metro: demand.LocalMetro, VIPManager: infrav1.VIPManagerCPEM}
	credentials := anywherev1.LocalCredentials
	if packet := b.Config.Packet; packet != nil {
		spec.ProjectID, spec.Metro, spec.Facility = packet.Spec.ProjectID, packet.Spec.Metro, packet.Spec.Facility
		credentials = packet.CredentialsName()
	}
	spec.CredentialsRef = &infrav1.CredentialsReference{Name: credentials}
	b.endpoint(&spec)
	b.set.Infrastructure = &infrav1.PacketCluster{ObjectMeta: b.meta(b.cluster.Name), Spec: spec}
	return nil
}

// annotateCluster adds what add-ons read: the upgrade in progress, and the settings of the user's
// Cilium.
func (b *builder) annotateCluster() error {
	values, err := ciliumValues(b.cluster)
	if err != nil {
		return err
	}
	for name, value := range map[string]string{addonsv1.KubernetesUpgradeAnnotation: b.Upgrade, anywherev1.CiliumValuesAnnotation: values} {
		if value != "" {
			metav1.SetMetaDataAnnotation(&b.set.Cluster.ObjectMeta, name, value)
		}
	}
	return nil
}

// endpoint returns the endpoint of the API server. Without a host, an address is reserved.
func (b *builder) endpoint(spec *infrav1.PacketClusterSpec) {
	if e := b.cluster.Spec.ControlPlaneConfiguration.Endpoint; e != nil && e.Host != "" {
		spec.ControlPlaneEndpoint = infrav1.APIEndpoint{Host: e.Host, Port: infrav1.APIServerPort}
	}
}

// machineSpec returns the spec of the machines of a group.
func (b *builder) machineSpec(ref *anywherev1.Ref) (infrav1.PacketMachineSpec, error) {
	if b.Config.Packet == nil {
		return infrav1.PacketMachineSpec{OS: localOS, BillingCycle: billingCycle, MachineType: demand.LocalPlan}, nil
	}
	config, err := b.machineConfig(ref)
	if err != nil {
		return infrav1.PacketMachineSpec{}, err
	}
	s := config.Spec
	out := infrav1.PacketMachineSpec{
		OS: s.OS, BillingCycle: s.BillingCycle, MachineType: s.MachineType, SSHKeys: slices.Clone(s.SSHKeys), Tags: slices.Clone(s.Tags),
		HardwareReservationID: s.HardwareReservationID,
	}
	if out.BillingCycle == "" {
		out.BillingCycle = billingCycle
	}
	return out, nil
}

func (b *builder) machineConfig(ref *anywherev1.Ref) (*anywherev1.PacketMachineConfig, error) {
	if ref == nil {
		return nil, &UnsupportedError{"machineGroupRef", "machines of Packet need a PacketMachineConfig"}
	}
	config, ok := b.Config.Machines[ref.Name]
	if !ok {
		return nil, &UnsupportedError{"machineGroupRef", "PacketMachineConfig " + ref.Name + " not found"}
	}
	return config, nil
}

// machineTemplate builds the template of the machines of a group and returns its name.
func (b *builder) machineTemplate(group, used string, ref *anywherev1.Ref) (string, error) {
	spec, err := b.machineSpec(ref)
	if err != nil {
		return "", err
	}
	template := &infrav1.PacketMachineTemplate{}
	template.Spec.Template.Spec = spec
	if err := settle(b, slot{group, used, spec}, template, b.Now.Machines); err != nil {
		return "", err
	}
	b.set.Machines = append(b.set.Machines, template)
	return template.Name, nil
}

// ControlPlaneReference returns the reference of a Cluster to its control plane.
func ControlPlaneReference(cluster string) clusterv1.ContractVersionedObjectReference {
	return reference(controlPlaneAPIGroup, "KubeadmControlPlane", cluster)
}

func reference(group, kind, name string) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{APIGroup: group, Kind: kind, Name: name}
}
