package template

import (
	corev1 "k8s.io/api/core/v1"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/metal/client"
)

// status records the machine type even if the API does not know it, so that it is not asked again.
func status(machineType string, plan *client.Plan) infrav1.PacketMachineTemplateStatus {
	s := infrav1.PacketMachineTemplateStatus{MachineType: machineType}
	if plan == nil {
		return s
	}
	s.Capacity = capacity(plan.Specs)
	s.NodeInfo = infrav1.NodeInfo{Architecture: architecture(plan), OperatingSystem: string(corev1.Linux)}
	return s
}
