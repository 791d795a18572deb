package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

var noon = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

func condition(kind string, is bool) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: "R", Message: kind + " is not well"}
	if is {
		c.Status, c.Message = metav1.ConditionTrue, ""
	}
	return c
}

// healthyFacts returns the facts of a healthy cluster with one control plane machine and two
// workers.
func healthyFacts() facts {
	c := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n", Generation: 3}}
	c.Spec.ControlPlaneConfiguration.Count = 1
	c.Spec.WorkerNodeGroupConfigurations = []anywherev1.WorkerNodeGroupConfiguration{{Name: "md-0", Count: ptr.To(2)}}
	k := &controlplanev1.KubeadmControlPlane{ObjectMeta: metav1.ObjectMeta{Name: "c", Generation: 2}}
	k.Spec.Replicas = ptr.To[int32](1)
	k.Status = controlplanev1.KubeadmControlPlaneStatus{
		ObservedGeneration: 2, Version: "v1.36.3", Replicas: ptr.To[int32](1), UpToDateReplicas: ptr.To[int32](1), ReadyReplicas: ptr.To[int32](1),
		Conditions: []metav1.Condition{condition(controlplanev1.KubeadmControlPlaneAvailableCondition, true)},
	}
	k.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	d := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "c-md-0", Generation: 5}}
	d.Spec.Replicas = ptr.To[int32](2)
	d.Status = clusterv1.MachineDeploymentStatus{
		ObservedGeneration: 5, Replicas: ptr.To[int32](2), UpToDateReplicas: ptr.To[int32](2), ReadyReplicas: ptr.To[int32](2),
		Conditions: []metav1.Condition{condition(clusterv1.MachineDeploymentAvailableCondition, true)},
	}
	f := facts{cluster: c, controlPlane: k, workers: []*clusterv1.MachineDeployment{d}, networkOurs: true, children: 4, now: noon}
	f.machines = machinesOf(1, 2)
	d.Spec.Template.Spec.Version = "v1.36.3"
	f.sets = []*clusterv1.MachineSet{{ObjectMeta: metav1.ObjectMeta{Name: "now"}}, {ObjectMeta: metav1.ObjectMeta{Name: "before"}}}
	f.sets[0].Spec.Template.Spec.Version, f.sets[1].Spec.Template.Spec.Version = "v1.36.3", "v1.35.4"
	f.network = &addonsv1.HelmChartProxy{Spec: addonsv1.HelmChartProxySpec{Version: "1"}}
	f.release = &addonsv1.HelmReleaseProxy{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: addonsv1.HelmReleaseProxySpec{Version: "1"}}
	f.release.Status.Conditions = []metav1.Condition{condition(clusterv1.ReadyCondition, true)}
	return f
}

func machinesOf(controlPlanes, workers int) []*clusterv1.Machine {
	var out []*clusterv1.Machine
	for i := range controlPlanes + workers {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("m%d", i)}}
		m.Labels = map[string]string{clusterv1.MachineDeploymentNameLabel: "c-md-0", clusterv1.MachineSetNameLabel: "now"}
		if i < controlPlanes {
			m.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
			m.Status.CertificatesExpiryDate = metav1.NewTime(noon.Add(30*day + time.Hour))
		}
		out = append(out, m)
	}
	return out
}

func TestConditions(t *testing.T) {
	const ok = "True"
	for _, tc := range []struct {
		name   string
		change func(*facts)
		kind   string
		want   string
		ready  string
	}{
		{"all is well", func(*facts) {}, anywherev1.ControlPlaneReady, "True Ready", "True Ready"},
		{
			"nothing is there", func(f *facts) { f.controlPlane, f.workers, f.machines, f.release = nil, nil, nil, nil }, anywherev1.ControlPlaneInitialized,
			"False ControlPlaneInitializationInProgress The first control plane instance is not available yet",
			"False ControlPlaneInitializationInProgress The first control plane instance is not available yet",
		},
		{
			"workers wait for the first control plane", func(f *facts) { f.controlPlane.Status.Initialization.ControlPlaneInitialized = nil }, anywherev1.WorkersReady,
			"False ControlPlaneNotInitialized The first control plane instance is not available yet",
			"False ControlPlaneInitializationInProgress The first control plane instance is not available yet",
		},
		{
			"what was initialized once stays so", func(f *facts) {
				f.controlPlane.Status.Initialization.ControlPlaneInitialized = nil
				f.cluster.Status.Conditions = []metav1.Condition{condition(anywherev1.ControlPlaneInitialized, true)}
			}, anywherev1.ControlPlaneInitialized, "True Initialized", "True Ready",
		},
		{
			"the control plane has not been observed", func(f *facts) { f.controlPlane.Generation++ }, anywherev1.ControlPlaneReady,
			"False OutdatedInformation Kubeadm control plane c not ready yet", "False OutdatedInformation Kubeadm control plane c not ready yet",
		},
		{
			"control planes are replaced", func(f *facts) { f.controlPlane.Status.Replicas = ptr.To[int32](2) }, anywherev1.ControlPlaneReady,
			"False RollingUpgradeInProgress Control plane nodes not up-to-date yet, 1 upgrading (1 up to date)",
			"False RollingUpgradeInProgress Control plane nodes not up-to-date yet, 1 upgrading (1 up to date)",
		},
		{
			"control planes are added", func(f *facts) { f.controlPlane.Spec.Replicas = ptr.To[int32](3) }, anywherev1.ControlPlaneReady,
			"False ScalingUp Scaling up control plane nodes, 3 expected (1 actual)", "False ScalingUp Scaling up control plane nodes, 3 expected (1 actual)",
		},
		{
			"control planes are removed", func(f *facts) {
				f.controlPlane.Status.Replicas, f.controlPlane.Status.UpToDateReplicas = ptr.To[int32](3), ptr.To[int32](3)
			}, anywherev1.ControlPlaneReady,
			"False ScalingDown Scaling down control plane nodes, 1 expected (3 actual)", "False ScalingDown Scaling down control plane nodes, 1 expected (3 actual)",
		},
		{
			"a control plane is not ready", func(f *facts) { f.controlPlane.Status.ReadyReplicas = nil }, anywherev1.ControlPlaneReady,
			"False NodesNotReady Control plane nodes not ready yet, 1 expected (0 ready)", "False NodesNotReady Control plane nodes not ready yet, 1 expected (0 ready)",
		},
		{
			"etcd is unhealthy", func(f *facts) {
				f.controlPlane.Status.Conditions = append(f.controlPlane.Status.Conditions, condition(controlplanev1.KubeadmControlPlaneEtcdClusterHealthyCondition, false))
			}, anywherev1.ControlPlaneReady,
			"False ControlPlaneComponentsUnhealthy EtcdClusterHealthy is not well", "False ControlPlaneComponentsUnhealthy EtcdClusterHealthy is not well",
		},
		{
			"the control plane is not available", func(f *facts) { f.controlPlane.Status.Conditions = nil }, anywherev1.ControlPlaneReady,
			"False KubeadmControlPlaneNotReady Kubeadm control plane c not ready yet", "False KubeadmControlPlaneNotReady Kubeadm control plane c not ready yet",
		},
		{
			"workers wait for the control plane's version", func(f *facts) { f.held = []string{"md-0"} }, anywherev1.WorkersReady,
			"False ControlPlaneNotReady Control plane is not ready yet", "False ControlPlaneNotReady Control plane is not ready yet",
		},
		{
			"workers are replaced", func(f *facts) { f.machines[1].Labels[clusterv1.MachineSetNameLabel] = "before" }, anywherev1.WorkersReady,
			"False RollingUpgradeInProgress Worker nodes not up-to-date yet, 1 upgrading (1 up to date)", "False RollingUpgradeInProgress Worker nodes not up-to-date yet, 1 upgrading (1 up to date)",
		},
		{
			"a worker that was replaced is still there", func(f *facts) { f.machines = machinesOf(1, 3) }, anywherev1.WorkersReady,
			"False ScalingDown Scaling down worker nodes, 2 expected (3 actual)", "False ScalingDown Scaling down worker nodes, 2 expected (3 actual)",
		},
		{
			"workers are added", func(f *facts) { f.machines = machinesOf(1, 0) }, anywherev1.WorkersReady,
			"False ScalingUp Scaling up worker nodes, 2 expected (0 actual)", "False ScalingUp Scaling up worker nodes, 2 expected (0 actual)",
		},
		{
			"a group has not been made", func(f *facts) { f.workers, f.machines = nil, machinesOf(1, 0) }, anywherev1.WorkersReady,
			"False ScalingUp Scaling up worker nodes, 2 expected (0 actual)", "False ScalingUp Scaling up worker nodes, 2 expected (0 actual)",
		},
		{
			"a group has not been observed", func(f *facts) { f.workers[0].Generation++ }, anywherev1.WorkersReady,
			"False OutdatedInformation Machine deployment c-md-0 not ready yet", "False OutdatedInformation Machine deployment c-md-0 not ready yet",
		},
		{
			"a worker is not ready", func(f *facts) { f.workers[0].Status.ReadyReplicas = ptr.To[int32](1) }, anywherev1.WorkersReady,
			"False NodesNotReady Worker nodes not ready yet, 2 expected (1 ready)", "False NodesNotReady Worker nodes not ready yet, 2 expected (1 ready)",
		},
		{
			"an autoscaled group is too small", func(f *facts) {
				f.cluster.Spec.WorkerNodeGroupConfigurations[0].AutoScalingConfiguration = &anywherev1.AutoScalingConfiguration{MinCount: 3, MaxCount: 5}
			}, anywherev1.WorkersReady,
			"False AutoscalerConstraintNotMet Worker nodes count for md-0 not between 3 and 5 yet (2 actual)",
			"False AutoscalerConstraintNotMet Worker nodes count for md-0 not between 3 and 5 yet (2 actual)",
		},
		{
			"a group says that it is not available", func(f *facts) { f.workers[0].Status.Conditions = nil }, anywherev1.WorkersReady,
			"False MachineDeploymentNotReady Machine deployment c-md-0 not ready yet", "False MachineDeploymentNotReady Machine deployment c-md-0 not ready yet",
		},
		{
			"the network is the user's", func(f *facts) { f.networkOurs, f.release = false, nil }, anywherev1.DefaultCNIConfigured,
			"False SkipUpgradesForDefaultCNIConfigured Drover does not manage the Pod network of this cluster", "True Ready",
		},
		{
			"the network comes", func(f *facts) { f.release = nil }, anywherev1.DefaultCNIConfigured,
			"False DefaultCNIUpgradeInProgressReason The Pod network is not installed yet", "False DefaultCNIUpgradeInProgressReason The Pod network is not installed yet",
		},
		{
			"the network fails", func(f *facts) {
				f.release.Status.Conditions = []metav1.Condition{condition(clusterv1.ReadyCondition, false)}
			}, anywherev1.DefaultCNIConfigured,
			"False DefaultCNIUpgradeInProgressReason Ready is not well", "False DefaultCNIUpgradeInProgressReason Ready is not well",
		},
		{
			"the network is of another version", func(f *facts) { f.network.Spec.Version = "2" }, anywherev1.DefaultCNIConfigured,
			`False DefaultCNIUpgradeInProgressReason HelmReleaseProxy "r" is not ready yet`, `False DefaultCNIUpgradeInProgressReason HelmReleaseProxy "r" is not ready yet`,
		},
		{
			"an invalid spec", func(f *facts) { f.failure = &failure{anywherev1.ClusterInvalidReason, "it is wrong"} }, anywherev1.WorkersReady,
			"True Ready", "False Failed it is wrong",
		},
		{
			"being deleted", func(f *facts) { f.deleting, f.waiting = true, "2 machines are being deleted" }, anywherev1.ControlPlaneInitialized,
			"True Initialized", "False Deleting 2 machines are being deleted",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := healthyFacts()
			tc.change(&f)
			got := status(f)
			if is := conditionText(got, tc.kind); is != tc.want {
				t.Errorf("%s is %q, want %q", tc.kind, is, tc.want)
			}
			if is := conditionText(got, anywherev1.Ready); is != tc.ready {
				t.Errorf("Ready is %q, want %q", is, tc.ready)
			}
			reconciled := int64(0)
			if tc.ready[:len(ok)] == ok {
				reconciled = 3
			}
			if got.ReconciledGeneration != reconciled || got.ObservedGeneration != 3 {
				t.Errorf("generations are %d and %d", got.ReconciledGeneration, got.ObservedGeneration)
			}
			f.cluster.Status = got
			f.now = noon.Add(time.Minute)
			if diff := cmp.Diff(got, status(f)); diff != "" {
				t.Errorf("the same facts gave another status:\n%s", diff)
			}
		})
	}
}

func conditionText(s anywherev1.ClusterStatus, kind string) string {
	c := meta.FindStatusCondition(s.Conditions, kind)
	if c == nil {
		return "nothing"
	}
	text := string(c.Status) + " " + c.Reason
	if c.Message != "" {
		text += " " + c.Message
	}
	return text
}

func TestStatusFields(t *testing.T) {
	f := healthyFacts()
	f.failure = &failure{anywherev1.MissingDependentObjectsReason, "no"}
	got := status(f)
	if got.Version != "v1.36.3" || got.ControlPlane != "1/1" || got.Workers != "2/2" {
		t.Errorf("got %q, %q, %q", got.Version, got.ControlPlane, got.Workers)
	}
	if *got.FailureReason != anywherev1.MissingDependentObjectsReason || *got.FailureMessage != "no" {
		t.Errorf("failure is %s: %s", *got.FailureReason, *got.FailureMessage)
	}
	if diff := cmp.Diff([]anywherev1.ClusterCertificateInfo{{Machine: "m0", ExpiresInDays: 30}}, got.ClusterCertificateInfo); diff != "" {
		t.Errorf("certificates (-want +got):\n%s", diff)
	}
	f.failure, f.cluster.Status = nil, got
	if again := status(f); again.FailureReason != nil || again.FailureMessage != nil || again.ReconciledGeneration != 3 || again.ChildrenReconciledGeneration != 4 {
		t.Errorf("after the failure: %+v", again)
	}
}

func TestDroverUpToDateNamesTheCommand(t *testing.T) {
	for name, tt := range map[string]struct {
		wanted string
		worker bool
		want   string
	}{
		"no version":         {"", false, ""},
		"the installed one":  {"v0.2.0", false, "True"},
		"another one":        {"v0.3.0", false, "False Drover v0.2.0 is installed: run `drover upgrade cluster -f FILE` of Drover v0.3.0 with the spec of the cluster"},
		"a workload cluster": {"v0.3.0", true, ""},
	} {
		c := &anywherev1.Cluster{Spec: anywherev1.ClusterSpec{DroverVersion: tt.wanted}}
		if tt.worker {
			c.Spec.Management = ptr.To(false)
		}
		c.Status.Conditions = []metav1.Condition{{Type: anywherev1.DroverUpToDate, Status: metav1.ConditionUnknown}}
		got := ""
		if found := meta.FindStatusCondition(status(facts{cluster: c, drover: "v0.2.0", now: noon}).Conditions, anywherev1.DroverUpToDate); found != nil {
			got = strings.TrimSpace(string(found.Status) + " " + found.Message)
		}
		if got != tt.want {
			t.Errorf("%s: condition %q, want %q", name, got, tt.want)
		}
	}
}
