package demand

import (
	"slices"

	"k8s.io/utils/ptr"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
)

// group is machines of a cluster that are replaced together.
type group struct {
	// name identifies the group in two versions of a spec.
	name     string
	stage    stage
	machines Machines
	// most is the largest size of an autoscaled group.
	most int
	// surge is the number of spare machines of a rollout.
	surge    int
	reserved bool
	// unknown means that the machine config does not exist, so that nobody knows the plan.
	unknown bool
	// content is everything that replaces the machines when it changes.
	content any
}

// stage is when a group is replaced: one stage ends before the next begins.
type stage int

const (
	etcdStage stage = iota
	controlPlaneStage
	workerStage
	stages
)

// groups returns the groups that need machines from a pool.
func groups(c *spec.Config) []group {
	return slices.DeleteFunc(allGroups(c), func(g group) bool { return g.reserved || g.unknown })
}

// allGroups returns the groups of a cluster, external etcd first.
func allGroups(c *spec.Config) []group {
	s := c.Cluster.Spec
	var out []group
	if etcd := s.ExternalEtcdConfiguration; etcd != nil {
		out = append(out, place(c, group{name: "etcd", stage: etcdStage, surge: 1, content: []any{s.KubernetesVersion, s.ProxyConfiguration, s.RegistryMirrorConfiguration}}, etcd.MachineGroupRef, etcd.Count))
	}
	out = append(out, place(c, controlPlane(c), s.ControlPlaneConfiguration.MachineGroupRef, s.ControlPlaneConfiguration.Count))
	for _, g := range s.WorkerNodeGroupConfigurations {
		placed := place(c, workers(c, g), g.MachineGroupRef, ptr.Deref(g.Count, 1))
		if c.Packet != nil && len(g.FailureDomains) > 0 {
			placed.machines.Metro, placed.machines.Facility = g.FailureDomains[0], ""
		}
		out = append(out, placed)
	}
	return out
}

// place adds the plan and the location.
func place(c *spec.Config, g group, ref *anywherev1.Ref, count int) group {
	g.machines = Machines{Plan: LocalPlan, Metro: LocalMetro, Count: count}
	if c.Packet == nil {
		return g
	}
	g.machines.Metro, g.machines.Facility = c.Packet.Spec.Metro, c.Packet.Spec.Facility
	if g.machines.Metro != "" {
		g.machines.Facility = "" // The metro takes precedence.
	}
	config := c.Machines[ptr.Deref(ref, anywherev1.Ref{}).Name]
	if config == nil {
		g.machines.Plan, g.unknown = "", true
		return g
	}
	g.machines.Plan, g.reserved = config.Spec.MachineType, config.Spec.HardwareReservationID != ""
	g.content = []any{g.content, config.Spec}
	return g
}

// controlPlane returns the group without its machines. Most settings of a cluster replace its
// control plane machines, and so do other endpoints of external etcd; counting one that doesn't is
// harmless.
func controlPlane(c *spec.Config) group {
	s := c.Cluster.Spec.DeepCopy()
	surge := 1
	if r := s.ControlPlaneConfiguration.UpgradeRolloutStrategy; r != nil && r.RollingUpdate != nil {
		surge = r.RollingUpdate.MaxSurge
	}
	if inPlace(s.ControlPlaneConfiguration) {
		surge = 0
	}
	own := &s.ControlPlaneConfiguration
	own.Count, own.UpgradeRolloutStrategy, own.MachineHealthCheck = 0, nil, nil
	if etcd := s.ExternalEtcdConfiguration; etcd != nil {
		etcd.MachineGroupRef = nil
	}
	s.WorkerNodeGroupConfigurations, s.MachineHealthCheck, s.GitOpsRef, s.Packages = nil, nil, nil, nil
	s.EksaVersion, s.LicenseToken, s.DatacenterRef = "", "", anywherev1.Ref{}
	return group{name: "control plane", stage: controlPlaneStage, surge: surge, content: *s}
}

// inPlace reports whether a control plane is upgraded without another machine.
func inPlace(c anywherev1.ControlPlaneConfiguration) bool {
	return c.UpgradeRolloutStrategy != nil && c.UpgradeRolloutStrategy.Type == anywherev1.InPlaceStrategyType
}

// workers returns a group without its machines.
func workers(c *spec.Config, g anywherev1.WorkerNodeGroupConfiguration) group {
	out := group{name: "workers " + g.Name, stage: workerStage, surge: 1}
	if r := g.UpgradeRolloutStrategy; r != nil && r.RollingUpdate != nil {
		out.surge = r.RollingUpdate.MaxSurge
	}
	if r := g.UpgradeRolloutStrategy; r != nil && r.Type == anywherev1.InPlaceStrategyType {
		out.surge = 0
	}
	if a := g.AutoScalingConfiguration; a != nil {
		out.most = a.MaxCount
	}
	own := *g.DeepCopy()
	own.Count, own.AutoScalingConfiguration, own.UpgradeRolloutStrategy, own.MachineHealthCheck = nil, nil, nil, nil
	own.KubernetesVersion = ptr.To(ptr.Deref(g.KubernetesVersion, c.Cluster.Spec.KubernetesVersion))
	s := c.Cluster.Spec
	out.content = []any{own, s.ProxyConfiguration, s.RegistryMirrorConfiguration}
	return out
}
