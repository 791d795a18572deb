package build

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// Defaults of health checks.
const (
	startupTimeout          = 10 * time.Minute
	unhealthyTimeout        = 5 * time.Minute
	unhealthyControlPlanes  = "100%"
	unhealthyWorkersAllowed = "40%"
)

// patience is how long a machine may have no node or an unhealthy one, and how many such machines
// are tolerated.
type patience struct {
	startup, unhealthy time.Duration
	most               intstr.IntOrString
}

// healthChecks builds a health check for the control plane and for each group.
func (b *builder) healthChecks() error {
	c := b.cluster.Spec.ControlPlaneConfiguration
	b.healthCheck(controlPlaneCheckName(b.cluster.Name), map[string]string{clusterv1.MachineControlPlaneLabel: ""},
		settlePatience(unhealthyControlPlanes, b.cluster.Spec.MachineHealthCheck, c.MachineHealthCheck))
	for _, g := range b.cluster.Spec.WorkerNodeGroupConfigurations {
		b.healthCheck(workersCheckName(b.cluster.Name, g.Name), map[string]string{clusterv1.MachineDeploymentNameLabel: WorkersName(b.cluster.Name, g.Name)},
			settlePatience(unhealthyWorkersAllowed, b.cluster.Spec.MachineHealthCheck, g.MachineHealthCheck))
	}
	return nil
}

// settlePatience merges health checks; later ones override earlier ones.
func settlePatience(most string, settings ...*anywherev1.MachineHealthCheck) patience {
	p := patience{startup: startupTimeout, unhealthy: unhealthyTimeout, most: intstr.FromString(most)}
	for _, s := range settings {
		if s == nil {
			continue
		}
		if s.NodeStartupTimeout != nil {
			p.startup = s.NodeStartupTimeout.Duration
		}
		if s.UnhealthyMachineTimeout != nil {
			p.unhealthy = s.UnhealthyMachineTimeout.Duration
		}
		if s.MaxUnhealthy != nil {
			p.most = *s.MaxUnhealthy
		}
	}
	return p
}

func (b *builder) healthCheck(name string, selector map[string]string, p patience) {
	out := &clusterv1.MachineHealthCheck{ObjectMeta: b.meta(name)}
	out.Spec.ClusterName = b.cluster.Name
	out.Spec.Selector = metav1.LabelSelector{MatchLabels: selector}
	out.Spec.Checks.NodeStartupTimeoutSeconds = seconds(p.startup)
	for _, status := range []corev1.ConditionStatus{corev1.ConditionUnknown, corev1.ConditionFalse} {
		out.Spec.Checks.UnhealthyNodeConditions = append(out.Spec.Checks.UnhealthyNodeConditions, clusterv1.UnhealthyNodeCondition{
			Type: corev1.NodeReady, Status: status, TimeoutSeconds: seconds(p.unhealthy),
		})
	}
	out.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo = ptr.To(p.most)
	b.set.HealthChecks = append(b.set.HealthChecks, out)
}

func seconds(d time.Duration) *int32 { return ptr.To(int32(d / time.Second)) }
