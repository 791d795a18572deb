package build

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/model/inplace"
)

// Machinery identifies the templates, the version and the location of machines. All of it changes
// at once, so that a group is replaced once.
type Machinery struct{ Version, Machines, Bootstrap, FailureDomain string }

// MachineryOf returns the machinery of a MachineDeployment or MachineSet.
func MachineryOf(s clusterv1.MachineSpec) Machinery {
	return Machinery{Version: s.Version, Machines: s.InfrastructureRef.Name, Bootstrap: s.Bootstrap.ConfigRef.Name, FailureDomain: s.FailureDomain}
}

// workers builds a MachineDeployment and its templates for each group.
func (b *builder) workers() error {
	for i := range b.cluster.Spec.WorkerNodeGroupConfigurations {
		group := &b.cluster.Spec.WorkerNodeGroupConfigurations[i]
		if err := b.group(group); err != nil {
			return fmt.Errorf("group %q: %w", group.Name, err)
		}
	}
	return nil
}

func (b *builder) group(group *anywherev1.WorkerNodeGroupConfiguration) error {
	name := WorkersName(b.cluster.Name, group.Name)
	now := b.Now.Workers[name]
	target, err := b.groupVersion(group)
	if err != nil {
		return err
	}
	if now != nil && b.HoldMachines {
		b.set.Workers = append(b.set.Workers, b.deployment(group, now, machineryOf(now)))
		return nil
	}
	if now != nil && (isNewerThanControlPlane(target, b.Now) || b.HoldWorkers && target != now.Spec.Template.Spec.Version) {
		b.set.Held = append(b.set.Held, group.Name)
		b.set.Workers = append(b.set.Workers, b.deployment(group, now, machineryOf(now)))
		return nil
	}
	made := Machinery{Version: target, FailureDomain: failureDomain(group)}
	used := machineryOf(now)
	if made.Machines, err = b.machineTemplate(group.Name, used.Machines, group.MachineGroupRef); err != nil {
		return err
	}
	if made.Bootstrap, err = b.bootstrapTemplate(group, used.Bootstrap); err != nil {
		return err
	}
	b.set.Workers = append(b.set.Workers, b.deployment(group, now, made))
	return nil
}

// groupVersion returns the version of the group, or of the cluster.
func (b *builder) groupVersion(group *anywherev1.WorkerNodeGroupConfiguration) (string, error) {
	if group.KubernetesVersion == nil || *group.KubernetesVersion == "" {
		return b.version, nil
	}
	return b.Version(*group.KubernetesVersion)
}

// failureDomain returns the metro of a group, or an empty string for the location of the cluster.
func failureDomain(group *anywherev1.WorkerNodeGroupConfiguration) string {
	if len(group.FailureDomains) == 0 {
		return ""
	}
	return group.FailureDomains[0]
}

// isNewerThanControlPlane reports whether workers of a version would be newer than an existing
// control plane machine.
func isNewerThanControlPlane(target string, now *Existing) bool {
	if now.ControlPlane == nil || now.ControlPlane.Status.Version == "" {
		return false
	}
	wanted, err := version.ParseSemantic(target)
	if err != nil {
		return false
	}
	present, err := version.ParseSemantic(now.ControlPlane.Status.Version)
	return err == nil && present.LessThan(wanted)
}

func machineryOf(d *clusterv1.MachineDeployment) Machinery {
	if d == nil {
		return Machinery{}
	}
	return MachineryOf(d.Spec.Template.Spec)
}

func (b *builder) deployment(group *anywherev1.WorkerNodeGroupConfiguration, now *clusterv1.MachineDeployment, m Machinery) *clusterv1.MachineDeployment {
	out := &clusterv1.MachineDeployment{ObjectMeta: b.meta(WorkersName(b.cluster.Name, group.Name))}
	own := map[string]string{clusterv1.ClusterNameLabel: b.cluster.Name, clusterv1.MachineDeploymentNameLabel: out.Name}
	_, propagated := splitLabels(group.Labels)
	out.Labels[GroupLabel] = group.Name
	out.Spec.ClusterName = b.cluster.Name
	out.Spec.Selector.MatchLabels = own
	out.Spec.Template.Labels = b.labels(propagated)
	out.Spec.Template.Labels[clusterv1.MachineDeploymentNameLabel] = out.Name
	out.Spec.Template.Labels[GroupLabel] = group.Name
	out.Spec.Template.Spec = clusterv1.MachineSpec{
		ClusterName:       b.cluster.Name,
		Version:           m.Version,
		FailureDomain:     m.FailureDomain,
		InfrastructureRef: reference(infrav1.GroupVersion.Group, "PacketMachineTemplate", m.Machines),
		Bootstrap:         clusterv1.Bootstrap{ConfigRef: reference(bootstrapAPIGroup, "KubeadmConfigTemplate", m.Bootstrap)},
		Deletion:          clusterv1.MachineDeletionSpec{NodeDeletionTimeoutSeconds: ptr.To[int32](nodeDeletionTimeout)},
	}
	scale(out, group, now)
	rollOut(out, group)
	b.allowOlder(out, group)
	return out
}

// allowOlder disables a check of Cluster API for groups with an older version: it holds back
// workers whose minor version differs from that of the control plane, which is stricter than
// validation and kubeadm.
func (b *builder) allowOlder(out *clusterv1.MachineDeployment, group *anywherev1.WorkerNodeGroupConfiguration) {
	if own := ptr.Deref(group.KubernetesVersion, ""); own == "" || own == b.cluster.Spec.KubernetesVersion {
		return
	}
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	out.Annotations[clusterv1.MachineSetSkipPreflightChecksAnnotation] = string(clusterv1.MachineSetPreflightCheckKubeadmVersionSkew)
}

// scale sets the replicas. In an existing autoscaled group, the autoscaler sets them.
func scale(out *clusterv1.MachineDeployment, group *anywherev1.WorkerNodeGroupConfiguration, now *clusterv1.MachineDeployment) {
	out.Spec.Replicas = ptr.To(int32(ptr.Deref(group.Count, 1)))
	bounds := group.AutoScalingConfiguration
	if bounds == nil {
		return
	}
	out.Annotations = map[string]string{
		clusterv1.AutoscalerMinSizeAnnotation: strconv.Itoa(bounds.MinCount),
		clusterv1.AutoscalerMaxSizeAnnotation: strconv.Itoa(bounds.MaxCount),
	}
	if now != nil {
		out.Spec.Replicas = nil
	}
}

func rollOut(out *clusterv1.MachineDeployment, group *anywherev1.WorkerNodeGroupConfiguration) {
	r := group.UpgradeRolloutStrategy
	if r != nil && r.Type == anywherev1.InPlaceStrategyType {
		out.Spec.Rollout.Strategy = clusterv1.MachineDeploymentRolloutStrategy{
			Type: clusterv1.RollingUpdateMachineDeploymentStrategyType,
			RollingUpdate: clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{
				MaxSurge: ptr.To(intstr.FromInt32(0)), MaxUnavailable: ptr.To(intstr.FromInt32(1)),
			},
		}
		out.Spec.Template.Annotations = map[string]string{inplace.Annotation: inplace.Strategy}
		return
	}
	if r == nil || r.RollingUpdate == nil {
		return
	}
	out.Spec.Rollout.Strategy = clusterv1.MachineDeploymentRolloutStrategy{
		Type: clusterv1.RollingUpdateMachineDeploymentStrategyType,
		RollingUpdate: clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{
			MaxSurge:       ptr.To(intstr.FromInt(r.RollingUpdate.MaxSurge)),
			MaxUnavailable: ptr.To(intstr.FromInt(r.RollingUpdate.MaxUnavailable)),
		},
	}
}

// bootstrapTemplate builds the kubeadm configuration of the machines of a group.
func (b *builder) bootstrapTemplate(group *anywherev1.WorkerNodeGroupConfiguration, used string) (string, error) {
	m := &machines{ref: group.MachineGroupRef, labels: group.Labels, kubelet: group.KubeletConfiguration}
	if len(group.Taints) > 0 {
		m.taints = ptr.To(slices.Clone(group.Taints))
	}
	if err := b.configure(m, everywhere); err != nil {
		return "", err
	}
	m.config.JoinConfiguration.NodeRegistration = m.node()
	m.config.InitConfiguration = bootstrapv1.InitConfiguration{}
	template := &bootstrapv1.KubeadmConfigTemplate{}
	template.Spec.Template.Spec = m.config
	if err := settle(b, slot{group.Name, used, m.config}, template, b.Now.Bootstraps); err != nil {
		return "", err
	}
	b.set.Bootstraps = append(b.set.Bootstraps, template)
	return template.Name, nil
}
