package demand

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
)

// local returns a cluster of local machines: 3 control plane machines, 2 workers "a", 4 workers
// "b".
func local(change ...func(*spec.Config)) *spec.Config {
	c := &spec.Config{Cluster: &anywherev1.Cluster{}}
	s := &c.Cluster.Spec
	s.KubernetesVersion = "1.35"
	s.ControlPlaneConfiguration.Count = 3
	s.WorkerNodeGroupConfigurations = []anywherev1.WorkerNodeGroupConfiguration{{Name: "a", Count: ptr.To(2)}, {Name: "b", Count: ptr.To(4)}}
	for _, edit := range change {
		edit(c)
	}
	return c
}

// rented returns the same cluster with a plan per group, and reserved hardware for "b".
func rented(change ...func(*spec.Config)) *spec.Config {
	c := local()
	c.Packet = &anywherev1.PacketDatacenterConfig{Spec: anywherev1.PacketDatacenterConfigSpec{Metro: "am"}}
	c.Machines = map[string]*anywherev1.PacketMachineConfig{}
	for name, plan := range map[string]string{"cp": "c3.small.x86", "a": "m3.large.x86", "b": "c3.medium.x86"} {
		c.Machines[name] = &anywherev1.PacketMachineConfig{Spec: anywherev1.PacketMachineConfigSpec{MachineType: plan}}
	}
	c.Machines["b"].Spec.HardwareReservationID = "next-available"
	s := &c.Cluster.Spec
	s.ControlPlaneConfiguration.MachineGroupRef = &anywherev1.Ref{Name: "cp"}
	for i := range s.WorkerNodeGroupConfigurations {
		s.WorkerNodeGroupConfigurations[i].MachineGroupRef = &anywherev1.Ref{Name: s.WorkerNodeGroupConfigurations[i].Name}
	}
	for _, edit := range change {
		edit(c)
	}
	return c
}

func smalls(n int) []Machines { return []Machines{{Plan: LocalPlan, Metro: LocalMetro, Count: n}} }

func autoscale(c *spec.Config) {
	c.Cluster.Spec.WorkerNodeGroupConfigurations[0].AutoScalingConfiguration = &anywherev1.AutoScalingConfiguration{MinCount: 2, MaxCount: 7}
}

func TestOf(t *testing.T) {
	for name, tt := range map[string]struct {
		config     *spec.Config
		want, most []Machines
	}{
		"local machines have one plan":  {local(), smalls(9), smalls(9)},
		"autoscaling raises the most":   {local(autoscale), smalls(9), smalls(14)},
		"a group without a count has 1": {local(func(c *spec.Config) { c.Cluster.Spec.WorkerNodeGroupConfigurations[0].Count = nil }), smalls(8), smalls(8)},
		"external etcd needs machines": {local(func(c *spec.Config) {
			c.Cluster.Spec.ExternalEtcdConfiguration = &anywherev1.ExternalEtcdConfiguration{Count: 3}
		}), smalls(12), smalls(12)},
		"a group of 0 needs none": {local(func(c *spec.Config) { c.Cluster.Spec.WorkerNodeGroupConfigurations[1].Count = ptr.To(0) }), smalls(5), smalls(5)},
		"a missing config needs no machines yet": {
			rented(func(c *spec.Config) { delete(c.Machines, "a") }),
			[]Machines{{"c3.small.x86", "am", "", 3}},
			[]Machines{{"c3.small.x86", "am", "", 3}, {"", "am", "", 2}, {"c3.medium.x86", "am", "", 4}},
		},
		"a group may be in another metro": {
			rented(func(c *spec.Config) { c.Cluster.Spec.WorkerNodeGroupConfigurations[0].FailureDomains = []string{"ny"} }),
			[]Machines{{"c3.small.x86", "am", "", 3}, {"m3.large.x86", "ny", "", 2}},
			[]Machines{{"c3.small.x86", "am", "", 3}, {"m3.large.x86", "ny", "", 2}, {"c3.medium.x86", "am", "", 4}},
		},
		"reserved machines come from no pool": {
			rented(),
			[]Machines{{"c3.small.x86", "am", "", 3}, {"m3.large.x86", "am", "", 2}},
			[]Machines{{"c3.small.x86", "am", "", 3}, {"m3.large.x86", "am", "", 2}, {"c3.medium.x86", "am", "", 4}},
		},
		"a facility is a place": {
			rented(func(c *spec.Config) { c.Packet.Spec.Metro, c.Packet.Spec.Facility = "", "am6" }),
			[]Machines{{"c3.small.x86", "", "am6", 3}, {"m3.large.x86", "", "am6", 2}},
			[]Machines{{"c3.small.x86", "", "am6", 3}, {"m3.large.x86", "", "am6", 2}, {"c3.medium.x86", "", "am6", 4}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Of(tt.config)); diff != "" {
				t.Errorf("needed (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.most, Most(tt.config)); diff != "" {
				t.Errorf("at most (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAdded(t *testing.T) {
	upgrade := func(c *spec.Config) { c.Cluster.Spec.KubernetesVersion = "1.36" }
	external := func(n int) func(*spec.Config) {
		return func(c *spec.Config) {
			c.Cluster.Spec.ExternalEtcdConfiguration = &anywherev1.ExternalEtcdConfiguration{Count: n}
		}
	}
	noWorkers := func(c *spec.Config) { c.Cluster.Spec.WorkerNodeGroupConfigurations = nil }
	count := func(n int) func(*spec.Config) {
		return func(c *spec.Config) { c.Cluster.Spec.WorkerNodeGroupConfigurations[0].Count = ptr.To(n) }
	}
	for name, tt := range map[string]struct {
		was, is *spec.Config
		want    []Machines
	}{
		"the same":              {local(), local(), nil},
		"fewer workers":         {local(), local(count(1)), nil},
		"more workers":          {local(), local(count(5)), smalls(3)},
		"more control plane":    {local(), local(func(c *spec.Config) { c.Cluster.Spec.ControlPlaneConfiguration.Count = 5 }), smalls(2)},
		"a new group":           {local(), local(func(c *spec.Config) { c.Cluster.Spec.WorkerNodeGroupConfigurations[1].Name = "c" }), smalls(4)},
		"bounds of autoscaling": {local(), local(autoscale), nil},
		"labels replace a group": {local(), local(func(c *spec.Config) {
			c.Cluster.Spec.WorkerNodeGroupConfigurations[0].Labels = map[string]string{"a": "b"}
		}), smalls(1)},
		"an upgrade":                  {local(), local(upgrade), smalls(2)}, // one spare machine per group of workers at a time
		"an upgrade and more workers": {local(), local(upgrade, count(4)), smalls(4)},
		"an upgrade without spare machines": {local(), local(upgrade, func(c *spec.Config) {
			c.Cluster.Spec.ControlPlaneConfiguration.UpgradeRolloutStrategy = &anywherev1.ControlPlaneUpgradeRolloutStrategy{RollingUpdate: &anywherev1.ControlPlaneRollingUpdateParams{}}
			for i := range c.Cluster.Spec.WorkerNodeGroupConfigurations {
				c.Cluster.Spec.WorkerNodeGroupConfigurations[i].UpgradeRolloutStrategy = &anywherev1.WorkerNodesUpgradeRolloutStrategy{RollingUpdate: &anywherev1.WorkerNodesRollingUpdateParams{MaxUnavailable: 1}}
			}
		}), nil},
		"an upgrade in place": {local(), local(upgrade, func(c *spec.Config) {
			c.Cluster.Spec.ControlPlaneConfiguration.UpgradeRolloutStrategy = &anywherev1.ControlPlaneUpgradeRolloutStrategy{Type: anywherev1.InPlaceStrategyType}
			for i := range c.Cluster.Spec.WorkerNodeGroupConfigurations {
				c.Cluster.Spec.WorkerNodeGroupConfigurations[i].UpgradeRolloutStrategy = &anywherev1.WorkerNodesUpgradeRolloutStrategy{Type: anywherev1.InPlaceStrategyType}
			}
		}), nil},
		"groups that keep their version": {local(), local(upgrade, func(c *spec.Config) {
			for i := range c.Cluster.Spec.WorkerNodeGroupConfigurations {
				c.Cluster.Spec.WorkerNodeGroupConfigurations[i].KubernetesVersion = ptr.To("1.35")
			}
		}), smalls(1)},
		"an upgrade with several plans":   {rented(), rented(upgrade), []Machines{{"c3.small.x86", "am", "", 1}, {"m3.large.x86", "am", "", 1}}},
		"another plan":                    {rented(), rented(func(c *spec.Config) { c.Machines["a"].Spec.MachineType = "c3.medium.x86" }), []Machines{{"c3.medium.x86", "am", "", 2}}},
		"another operating system":        {rented(), rented(func(c *spec.Config) { c.Machines["a"].Spec.OS = "debian_12" }), []Machines{{"m3.large.x86", "am", "", 1}}},
		"an upgrade with external etcd":   {local(external(3)), local(external(3), upgrade), smalls(2)}, // etcd first, then the control plane, then workers
		"only etcd and the control plane": {local(external(3), noWorkers), local(external(3), noWorkers, upgrade), smalls(1)},
		"another mirror for etcd": {local(external(3), noWorkers), local(external(3), noWorkers, func(c *spec.Config) {
			c.Cluster.Spec.RegistryMirrorConfiguration = &anywherev1.RegistryMirrorConfiguration{Endpoint: "m.example.com"}
		}), smalls(1)},
		"more members replace the control plane": {local(external(1), noWorkers), local(external(3), noWorkers), smalls(3)},
		"health checks replace nothing":          {local(), local(func(c *spec.Config) { c.Cluster.Spec.MachineHealthCheck = &anywherev1.MachineHealthCheck{} }), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Added(tt.was, tt.is)); diff != "" {
				t.Errorf("added (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLess(t *testing.T) {
	all := []Machines{{"p", "da", "", 3}, {"q", "da", "", 2}, {"p", "ny", "", 1}}
	others := []Machines{{"p", "da", "", 1}, {"q", "da", "", 5}, {"r", "da", "", 1}}
	if diff := cmp.Diff([]Machines{{"p", "da", "", 2}, {"p", "ny", "", 1}}, Less(all, others)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	if got := Count(all); got != 6 {
		t.Errorf("%d machines", got)
	}
	if got := Warning(all[:2]); got != "not enough machines: 3 of plan p in da, 2 of plan q in da" {
		t.Error(got)
	}
}

func TestCredentials(t *testing.T) {
	c := rented(func(c *spec.Config) { c.Packet.Spec.CredentialsRef = &anywherev1.CredentialsRef{Name: "mine"} })
	if got := Credentials(c); got != "mine" {
		t.Errorf("rented machines: %s", got)
	}
	if got := Credentials(local()); got != anywherev1.LocalCredentials {
		t.Errorf("local machines: %s", got)
	}
}
