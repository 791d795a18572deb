package spec

import (
	"slices"
	"strings"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// absentKinds are kinds of the group that files have and that say nothing about a cluster here.
var absentKinds = []string{"Bundles", "EKSARelease", "ControlPlaneUpgrade", "MachineDeploymentUpgrade", "NodeUpgrade"}

// clouds are infrastructures that kinds of the group are named after, and that Drover does not drive.
var clouds = []string{"VSphere", "Tinkerbell", "CloudStack", "Nutanix", "Snow", "AWS"}

// supported says what can be used instead.
const supported = "machines come from a DockerDatacenterConfig, which is this host, or from a PacketDatacenterConfig with PacketMachineConfigs, " +
	"which is any machine behind the Packet API"

// kinds of the group that Drover has.
var kinds = []string{
	anywherev1.ClusterKind, anywherev1.DockerDatacenterConfigKind, anywherev1.PacketDatacenterConfigKind, anywherev1.PacketMachineConfigKind,
	anywherev1.FluxConfigKind, anywherev1.GitOpsConfigKind, anywherev1.OIDCConfigKind,
}

// awsIAM is the kind that names users of a cloud.
const awsIAM = "AWSIamConfig"

// remedyForKind says what to use instead of a kind that is not supported.
func remedyForKind(kind string) string {
	if kind == awsIAM {
		return "users log in with an OIDCConfig, or with certificates"
	}
	if slices.ContainsFunc(clouds, func(cloud string) bool { return strings.HasPrefix(kind, cloud) }) {
		return supported
	}
	if near := nearest(kind, kinds); near != "" {
		return "did you mean " + near + "?"
	}
	return "use one of " + strings.Join(kinds, ", ")
}
