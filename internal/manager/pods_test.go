package manager_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestPodChangesReconcileTheControlPlane(t *testing.T) {
	f := newFleetCluster(t, 1, 0, "v1.36.3")
	f.awaitMachines(1, 0, "v1.36.3")
	pods := workloadOf(t, f.c, f.ns, f.name).CoreV1().Pods(metav1.NamespaceSystem)
	for _, status := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue} {
		eventually(t, func() error {
			all, err := pods.List(t.Context(), metav1.ListOptions{LabelSelector: "component=kube-scheduler"})
			if err != nil || len(all.Items) != 1 {
				return fmt.Errorf("%d Pods: %w", len(all.Items), err)
			}
			pod := &all.Items[0]
			for i := range pod.Status.Conditions {
				if pod.Status.Conditions[i].Type == corev1.PodReady {
					pod.Status.Conditions[i].Status = status
				}
			}
			_, err = pods.Update(t.Context(), pod, metav1.UpdateOptions{})
			return err
		})
		eventually(t, func() error { return f.scheduler(status) })
	}
}

// scheduler fails until the control plane's machine reports the expected state of its scheduler.
func (f *fleetCluster) scheduler(want corev1.ConditionStatus) error {
	machines := &clusterv1.MachineList{}
	if err := f.c.List(f.t.Context(), machines, client.InNamespace(f.ns)); err != nil {
		return err
	}
	for _, m := range machines.Items {
		healthy := meta.FindStatusCondition(m.Status.Conditions, controlplanev1.KubeadmControlPlaneMachineSchedulerPodHealthyCondition)
		if healthy == nil || string(healthy.Status) != string(want) {
			return fmt.Errorf("machine %q says of its scheduler: %+v", m.Name, healthy)
		}
	}
	return nil
}
