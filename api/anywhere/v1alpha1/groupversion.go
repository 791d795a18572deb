package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version.
var GroupVersion = schema.GroupVersion{Group: "anywhere.eks.amazonaws.com", Version: "v1alpha1"}

// Kinds of the API group.
const (
	ClusterKind                = "Cluster"
	DockerDatacenterConfigKind = "DockerDatacenterConfig"
	PacketDatacenterConfigKind = "PacketDatacenterConfig"
	PacketMachineConfigKind    = "PacketMachineConfig"
	FluxConfigKind             = "FluxConfig"
	GitOpsConfigKind           = "GitOpsConfig"
	OIDCConfigKind             = "OIDCConfig"
)

// AddToScheme registers all kinds.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Cluster{}, &ClusterList{},
		&DockerDatacenterConfig{}, &DockerDatacenterConfigList{},
		&PacketDatacenterConfig{}, &PacketDatacenterConfigList{},
		&PacketMachineConfig{}, &PacketMachineConfigList{},
		&FluxConfig{}, &FluxConfigList{},
		&GitOpsConfig{}, &GitOpsConfigList{},
		&OIDCConfig{}, &OIDCConfigList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
