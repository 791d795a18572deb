package spec

import (
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// newObject returns an empty object of a supported kind, or nil.
func newObject(kind string) client.Object {
	switch kind {
	case anywherev1.ClusterKind:
		return &anywherev1.Cluster{}
	case anywherev1.DockerDatacenterConfigKind:
		return &anywherev1.DockerDatacenterConfig{}
	case anywherev1.PacketDatacenterConfigKind:
		return &anywherev1.PacketDatacenterConfig{}
	case anywherev1.PacketMachineConfigKind:
		return &anywherev1.PacketMachineConfig{}
	case anywherev1.FluxConfigKind:
		return &anywherev1.FluxConfig{}
	case anywherev1.GitOpsConfigKind:
		return &anywherev1.GitOpsConfig{}
	case anywherev1.OIDCConfigKind:
		return &anywherev1.OIDCConfig{}
	}
	return nil
}

// kindOf returns the kind of an object by its Go type.
func kindOf(o client.Object) string {
	switch o.(type) {
	case *anywherev1.Cluster:
		return anywherev1.ClusterKind
	case *anywherev1.DockerDatacenterConfig:
		return anywherev1.DockerDatacenterConfigKind
	case *anywherev1.PacketDatacenterConfig:
		return anywherev1.PacketDatacenterConfigKind
	case *anywherev1.PacketMachineConfig:
		return anywherev1.PacketMachineConfigKind
	case *anywherev1.FluxConfig:
		return anywherev1.FluxConfigKind
	case *anywherev1.GitOpsConfig:
		return anywherev1.GitOpsConfigKind
	case *anywherev1.OIDCConfig:
		return anywherev1.OIDCConfigKind
	}
	return ""
}

// add sets the field of an object.
func (c *Config) add(o client.Object) {
	switch o := o.(type) {
	case *anywherev1.Cluster:
		c.Cluster = o
	case *anywherev1.DockerDatacenterConfig:
		c.Docker = o
	case *anywherev1.PacketDatacenterConfig:
		c.Packet = o
	case *anywherev1.PacketMachineConfig:
		c.Machines = with(c.Machines, o.Name, o)
	case *anywherev1.FluxConfig:
		c.Flux = o
	case *anywherev1.GitOpsConfig:
		c.GitOps = o
	case *anywherev1.OIDCConfig:
		c.OIDC = with(c.OIDC, o.Name, o)
	}
}

// with adds to a map that may be nil.
func with[V any](m map[string]V, name string, value V) map[string]V {
	if m == nil {
		m = map[string]V{}
	}
	m[name] = value
	return m
}

// References returns the references of a Cluster without duplicates, in the order of its spec,
// including unsupported kinds.
func References(c *anywherev1.Cluster) []anywherev1.Ref {
	var refs []anywherev1.Ref
	for _, p := range places(c) {
		if !slices.Contains(refs, p.ref) {
			refs = append(refs, p.ref)
		}
	}
	return refs
}

// place is a reference and its path.
type place struct {
	path string
	ref  anywherev1.Ref
}

func places(c *anywherev1.Cluster) []place {
	s := &c.Spec
	all := []place{{"spec.datacenterRef", s.DatacenterRef}}
	add := func(path string, ref *anywherev1.Ref) {
		if ref != nil {
			all = append(all, place{path, *ref})
		}
	}
	add(controlPlane+".machineGroupRef", s.ControlPlaneConfiguration.MachineGroupRef)
	for i := range s.WorkerNodeGroupConfigurations {
		add(fmt.Sprintf("%s[%d].machineGroupRef", workers, i), s.WorkerNodeGroupConfigurations[i].MachineGroupRef)
	}
	if s.ExternalEtcdConfiguration != nil {
		add(externalEtcd+".machineGroupRef", s.ExternalEtcdConfiguration.MachineGroupRef)
	}
	add("spec.gitOpsRef", s.GitOpsRef)
	for i := range s.IdentityProviderRefs {
		add(fmt.Sprintf("spec.identityProviderRefs[%d]", i), &s.IdentityProviderRefs[i])
	}
	return all
}
