package build

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/model/inplace"
)

var (
	controlPlaneAPIGroup = controlplanev1.GroupVersion.Group
	bootstrapAPIGroup    = bootstrapv1.GroupVersion.Group
)

// controlPlane builds the KubeadmControlPlane and the template of its machines.
// With external etcd, it waits for that.
func (b *builder) controlPlane() error {
	if b.holdsControlPlane() {
		return nil
	}
	wanted := b.cluster.Spec.ControlPlaneConfiguration
	if now := b.Now.ControlPlane; now != nil && b.HoldMachines {
		b.set.ControlPlane = b.heldControlPlane(now, wanted.Count)
		return nil
	}
	used := ""
	if now := b.Now.ControlPlane; now != nil {
		used = now.Spec.MachineTemplate.Spec.InfrastructureRef.Name
	}
	template, err := b.machineTemplate(controlPlaneGroup, used, wanted.MachineGroupRef)
	if err != nil {
		return err
	}
	config, err := b.controlPlaneConfig()
	if err != nil {
		return err
	}
	_, propagated := splitLabels(wanted.Labels)
	out := &controlplanev1.KubeadmControlPlane{ObjectMeta: b.meta(b.cluster.Name)}
	out.Spec = controlplanev1.KubeadmControlPlaneSpec{
		Replicas:          ptr.To(int32(wanted.Count)),
		Version:           b.version,
		KubeadmConfigSpec: config,
	}
	out.Spec.MachineTemplate.ObjectMeta.Labels = b.labels(propagated)
	out.Spec.MachineTemplate.Spec.InfrastructureRef = reference(infrav1.GroupVersion.Group, "PacketMachineTemplate", template)
	out.Spec.MachineTemplate.Spec.Deletion.NodeDeletionTimeoutSeconds = ptr.To[int32](nodeDeletionTimeout)
	out.Spec.Rollout = b.rolloutOfCertificates()
	if r := wanted.UpgradeRolloutStrategy; r != nil && r.RollingUpdate != nil {
		out.Spec.Rollout.Strategy = controlplanev1.KubeadmControlPlaneRolloutStrategy{
			Type:          controlplanev1.RollingUpdateStrategyType,
			RollingUpdate: controlplanev1.KubeadmControlPlaneRolloutStrategyRollingUpdate{MaxSurge: ptr.To(intstr.FromInt(r.RollingUpdate.MaxSurge))},
		}
	}
	if InPlace(wanted.UpgradeRolloutStrategy) {
		// One machine at a time, and never another one.
		out.Spec.Rollout.Strategy = controlplanev1.KubeadmControlPlaneRolloutStrategy{
			Type:          controlplanev1.RollingUpdateStrategyType,
			RollingUpdate: controlplanev1.KubeadmControlPlaneRolloutStrategyRollingUpdate{MaxSurge: ptr.To(intstr.FromInt32(0))},
		}
		out.Spec.MachineTemplate.ObjectMeta.Annotations = map[string]string{inplace.Annotation: inplace.Strategy}
		sum, err := digest(config)
		if err != nil {
			return fmt.Errorf("digesting the kubeadm configuration: %w", err)
		}
		out.Annotations = map[string]string{ConfigAnnotation: sum}
	}
	b.set.ControlPlane = out
	return nil
}

// InPlace reports whether a strategy is to upgrade machines in place.
func InPlace(s *anywherev1.ControlPlaneUpgradeRolloutStrategy) bool {
	return s != nil && s.Type == anywherev1.InPlaceStrategyType
}

// heldControlPlane is the existing control plane with another number of machines.
func (b *builder) heldControlPlane(now *controlplanev1.KubeadmControlPlane, count int) *controlplanev1.KubeadmControlPlane {
	out := &controlplanev1.KubeadmControlPlane{ObjectMeta: b.meta(b.cluster.Name), Spec: *now.Spec.DeepCopy()}
	if digest, ok := now.Annotations[ConfigAnnotation]; ok {
		out.Annotations = map[string]string{ConfigAnnotation: digest}
	}
	out.Spec.Replicas = ptr.To(int32(count))
	return out
}

// controlPlaneConfig returns the kubeadm configuration of control plane machines.
func (b *builder) controlPlaneConfig() (bootstrapv1.KubeadmConfigSpec, error) {
	wanted := b.cluster.Spec.ControlPlaneConfiguration
	m := &machines{ref: wanted.MachineGroupRef, labels: wanted.Labels, kubelet: wanted.KubeletConfiguration}
	m.taints = ptr.To(append([]corev1.Taint{}, wanted.Taints...)) // An empty list means none; nil would mean the default of kubeadm.
	if len(wanted.Taints) == 0 && len(b.cluster.Spec.WorkerNodeGroupConfigurations) > 0 {
		m.taints = nil // The default taint keeps Pods away, which requires workers.
	}
	// Unlike RSA keys, these are generated instantly.
	m.config.ClusterConfiguration.EncryptionAlgorithm = bootstrapv1.EncryptionAlgorithmECDSAP256
	if err := b.configure(m, everywhere, controlPlanes); err != nil {
		return m.config, err
	}
	node := m.node()
	m.config.InitConfiguration.NodeRegistration = node
	m.config.JoinConfiguration.NodeRegistration = *node.DeepCopy()
	api := &m.config.ClusterConfiguration.APIServer
	slices.SortStableFunc(api.ExtraArgs, func(x, y bootstrapv1.Arg) int { return cmp.Compare(x.Name, y.Name) })
	return m.config, nil
}
