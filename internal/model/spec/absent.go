package spec

import (
	"slices"
	"strings"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// absentKinds are kinds of the API group that files may contain and that Drover ignores.
var absentKinds = []string{"Bundles", "EKSARelease", "ControlPlaneUpgrade", "MachineDeploymentUpgrade", "NodeUpgrade"}

// clouds are the prefixes of kinds of infrastructure that Drover does not support.
var clouds = []string{"VSphere", "Tinkerbell", "CloudStack", "Nutanix", "Snow", "AWS"}

// supported names the infrastructure that Drover supports.
const supported = "use a DockerDatacenterConfig for machines on this host, or a PacketDatacenterConfig with PacketMachineConfigs " +
	"for machines of a Packet API"

// kinds are the supported kinds of the API group.
var kinds = []string{
	anywherev1.ClusterKind, anywherev1.DockerDatacenterConfigKind, anywherev1.PacketDatacenterConfigKind, anywherev1.PacketMachineConfigKind,
	anywherev1.FluxConfigKind, anywherev1.GitOpsConfigKind, anywherev1.OIDCConfigKind,
}

// awsIAM is the kind of identity provider that uses AWS IAM.
const awsIAM = "AWSIamConfig"

// remedyForKind suggests an alternative to an unsupported kind.
func remedyForKind(kind string) string {
	if kind == awsIAM {
		return "authenticate users with an OIDCConfig or with certificates"
	}
	if slices.ContainsFunc(clouds, func(cloud string) bool { return strings.HasPrefix(kind, cloud) }) {
		return supported
	}
	if near := nearest(kind, kinds); near != "" {
		return "did you mean " + near + "?"
	}
	return "use one of " + strings.Join(kinds, ", ")
}
