package inspect

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
)

var epoch = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

// is makes a condition that became so a number of minutes before the epoch.
func is(kind string, status metav1.ConditionStatus, reason string, minutes int) metav1.Condition {
	at := metav1.NewTime(epoch.Add(-time.Duration(minutes) * time.Minute))
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: reason + " of " + kind, LastTransitionTime: at}
}

func met(kind string) metav1.Condition { return is(kind, metav1.ConditionTrue, "Yes", 60) }

func not(kind, reason string) metav1.Condition { return is(kind, metav1.ConditionFalse, reason, 20) }

// object makes a node with conditions.
func object(kind, name string, conditions ...metav1.Condition) *Node {
	return &Node{Kind: kind, Name: name, Created: metav1.NewTime(epoch.Add(-time.Hour)), Conditions: conditions}
}

// below puts nodes below another.
func below(n *Node, children ...*Node) *Node {
	n.Children = append(n.Children, children...)
	return n
}

func answers(n *Node, conditions ...string) *Node {
	n.Answers = conditions
	return n
}

// machine is one with a device in some state.
func machine(name string, device metav1.Condition) *Node {
	state := clusterv1.InfrastructureReadyCondition
	own := device
	own.Type = state
	m := object(kindMachine, name, met(clusterv1.BootstrapConfigReadyCondition), own)
	return answers(below(m, answers(object(kindDevice, name+"-device", device), state)), order[kindControlPlane]...)
}

// starting is a cluster whose control plane does not come up, with machines.
func starting(machines ...*Node) *Node {
	controlPlane := answers(below(object(kindControlPlane, "one", not("Initialized", "NotInitialized")), machines...), clusterv1.ClusterControlPlaneInitializedCondition)
	infra := answers(object(kindInfra, "one", met(infrav1.NetworkInfrastructureReady)), clusterv1.ClusterInfrastructureReadyCondition)
	capi := answers(below(object(kindCAPI, "one", met(clusterv1.ClusterInfrastructureReadyCondition), not(clusterv1.ClusterControlPlaneInitializedCondition, "NotInitialized")),
		infra, controlPlane), anywherev1.ControlPlaneInitialized, anywherev1.ControlPlaneReady, anywherev1.WorkersReady)
	return below(object(kindCluster, "one",
		not(anywherev1.ControlPlaneInitialized, anywherev1.ControlPlaneInitializationInProgressReason),
		not(anywherev1.DefaultCNIConfigured, anywherev1.ControlPlaneNotReadyReason),
		not(anywherev1.WorkersReady, anywherev1.ControlPlaneNotInitializedReason),
		not(anywherev1.Ready, anywherev1.ControlPlaneInitializationInProgressReason)), capi)
}

// waitingForEtcd is a cluster whose control plane waits for external etcd, with machines.
func waitingForEtcd(machines ...*Node) *Node {
	root := starting()
	root.Conditions = append(root.Conditions, not(anywherev1.EtcdReady, anywherev1.ExternalEtcdNotAvailableReason))
	etcd := object(kindEtcd, "one-etcd", met(etcdv1.EtcdEndpointsAvailable), not(etcdv1.Initialized, etcdv1.WaitingForMembersReason))
	return below(root, answers(below(etcd, machines...), anywherev1.EtcdReady))
}

func TestEtcdOfAControlPlaneCountsOnlyIfItIsStacked(t *testing.T) {
	k := &controlplanev1.KubeadmControlPlane{}
	k.Status.Conditions = []metav1.Condition{
		met("Initialized"), is(controlplanev1.KubeadmControlPlaneEtcdClusterHealthyCondition, metav1.ConditionUnknown, "InspectionFailed", 5),
	}
	if n := node(kindControlPlane, k, controlPlaneConditions(k)); n.Well() {
		t.Error("stacked etcd of unknown health is well")
	}
	k.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.Endpoints = []string{"https://192.0.2.1:2379"}
	if n := node(kindControlPlane, k, controlPlaneConditions(k)); !n.Well() || len(k.Status.Conditions) != 2 {
		t.Errorf("with external etcd the control plane waits for %+v", n.unmet())
	}
}

func TestTreeShowsExternalEtcdWithItsMachines(t *testing.T) {
	c := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	o := &Objects{}
	o.Etcds.Items = []etcdv1.EtcdadmCluster{{ObjectMeta: metav1.ObjectMeta{Name: "one-etcd"}}}
	o.Etcds.Items[0].Spec.Replicas, o.Etcds.Items[0].Status.ReadyReplicas = ptr.To[int32](3), 2
	for _, name := range []string{"one-etcd-0", "other"} {
		m := infrav1.PacketMachine{ObjectMeta: metav1.ObjectMeta{Name: name}}
		m.Labels = map[string]string{etcdv1.MemberLabel: strings.TrimSuffix(name, "-0")}
		m.Annotations = map[string]string{etcdv1.ExpiresAnnotation: "2027-01-02T03:04:05Z"}
		m.Status.InstanceStatus = ptr.To(infrav1.InstanceActive)
		o.Devices.Items = append(o.Devices.Items, m)
	}
	var got []string
	Tree(c, o).Walk(func(n *Node, _ int) { got = append(got, n.Kind+" "+n.Name+" "+n.Detail) })
	if diff := cmp.Diff([]string{"Cluster one Kubernetes ", "EtcdadmCluster one-etcd 2/3 members", "PacketMachine one-etcd-0 active, certificates are renewed on 2027-01-02"}, got); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

func TestTreeShowsWhenCertificatesExpire(t *testing.T) {
	m := &clusterv1.Machine{Status: clusterv1.MachineStatus{Phase: "Running"}}
	if got := (&Objects{}).machine(m).Detail; got != "Running" {
		t.Errorf("a worker is %q", got)
	}
	m.Status.CertificatesExpiryDate = metav1.NewTime(time.Date(2027, 5, 1, 12, 0, 0, 0, time.UTC))
	if got := (&Objects{}).machine(m).Detail; got != "Running, certificates expire on 2027-05-01" {
		t.Errorf("a control plane machine is %q", got)
	}
}

func TestWhyFollowsUnmetConditionsToTheRootCause(t *testing.T) {
	paused := starting()
	paused.Paused = true
	failed := starting()
	failed.Failure = "PacketMachineConfig workers not found"
	unseen := object(kindCluster, "one")
	behind := starting()
	behind.Behind = true
	deleting := starting(machine("a", met(infrav1.InstanceReady)))
	deleting.Walk(func(n *Node, _ int) { n.Deleting = n.Kind != kindInfra })
	draining := object(kindMachine, "a", is(clusterv1.DeletingCondition, metav1.ConditionTrue, clusterv1.MachineDeletingDrainingNodeReason, 8))
	draining.Deleting = true
	workers := object(kindCluster, "one", met(anywherev1.ControlPlaneInitialized), met(anywherev1.DefaultCNIConfigured), met(anywherev1.ControlPlaneReady),
		not(anywherev1.WorkersReady, anywherev1.ScalingUpReason), not(anywherev1.Ready, anywherev1.ScalingUpReason))
	network := below(object(kindCluster, "one", met(anywherev1.ControlPlaneInitialized), not(anywherev1.DefaultCNIConfigured, anywherev1.DefaultCNIUpgradeInProgressReason),
		not(anywherev1.ControlPlaneReady, anywherev1.NodesNotReadyReason)),
		answers(object(kindRelease, "one-cni", not("HelmReleaseReady", "HelmInstallOrUpgradeFailed")), anywherev1.DefaultCNIConfigured))

	for name, tt := range map[string]struct {
		tree  *Node
		chain string
		next  string
	}{
		"a cluster that is ready": {object(kindCluster, "one", met(anywherev1.Ready)), "", "nothing"},
		"no server is free": {
			starting(machine("a", not(infrav1.InstanceReady, infrav1.InsufficientCapacityReason))),
			"Cluster one ControlPlaneInitialized; Cluster API Cluster one ControlPlaneInitialized; KubeadmControlPlane one Initialized; " +
				"Machine a InfrastructureReady; PacketMachine a-device InstanceReady", "free a server",
		},
		"of two machines the one that is certainly wrong counts": {
			starting(machine("a", is(infrav1.InstanceReady, metav1.ConditionUnknown, "Unknown", 30)), machine("b", not(infrav1.InstanceReady, infrav1.BootstrapFailedReason))),
			"Cluster one ControlPlaneInitialized; Cluster API Cluster one ControlPlaneInitialized; KubeadmControlPlane one Initialized; " +
				"Machine b InfrastructureReady; PacketMachine b-device InstanceReady", "drover machine logs b-device",
		},
		"of two that are wrong the one that is so longest counts": {
			starting(machine("a", is(infrav1.InstanceReady, metav1.ConditionFalse, "X", 5)), machine("b", is(infrav1.InstanceReady, metav1.ConditionFalse, infrav1.BootstrapFailedReason, 30))),
			"Cluster one ControlPlaneInitialized; Cluster API Cluster one ControlPlaneInitialized; KubeadmControlPlane one Initialized; " +
				"Machine b InfrastructureReady; PacketMachine b-device InstanceReady", "drover machine logs b-device",
		},
		"machines that are well end the chain": {
			starting(machine("a", met(infrav1.InstanceReady))),
			"Cluster one ControlPlaneInitialized; Cluster API Cluster one ControlPlaneInitialized; KubeadmControlPlane one Initialized", "longer than usual",
		},
		"a paused cluster":         {paused, "Cluster one Paused", "remove the annotation " + anywherev1.PausedAnnotation},
		"an invalid spec":          {failed, "Cluster one Failed", "correct the spec"},
		"not observed":             {unseen, "Cluster one NotLookedAt", "drover status"},
		"latest spec not observed": {behind, "Cluster one OutdatedInformation", "drover status"},
		"a member of etcd that is not there": {
			waitingForEtcd(answers(object(kindDevice, "one-etcd-0", not(infrav1.InstanceReady, infrav1.InsufficientCapacityReason)), order[kindEtcd]...)),
			"Cluster one EtcdReady; EtcdadmCluster one-etcd Initialized; PacketMachine one-etcd-0 InstanceReady", "free a server",
		},
		"workers that scale up": {workers, "Cluster one WorkersReady", "longer than usual"},
		"the network before the nodes that wait for it": {
			network, "Cluster one DefaultCNIConfigured; HelmReleaseProxy one-cni HelmReleaseReady", "drover addon history one-cni",
		},
		"a cluster that is being deleted": {
			deleting, "Cluster one Deleting; Cluster API Cluster one Deleting; KubeadmControlPlane one Deleting; Machine a Deleting; PacketMachine a-device Deleting", "longer than usual",
		},
		"a machine that is being drained": {draining, "Machine a DrainingNode", "disruption budget"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Why(tt.tree, epoch)
			var chain []string
			for _, l := range got.Chain {
				what := l.Condition
				if what == "" {
					what = l.Reason
				}
				chain = append(chain, l.Kind+" "+l.Name+" "+what)
			}
			if diff := cmp.Diff(tt.chain, strings.Join(chain, "; ")); diff != "" {
				t.Errorf("chain (-want +got):\n%s", diff)
			}
			if !strings.Contains(got.Next, tt.next) || got.Ready != (tt.chain == "") {
				t.Errorf("what to do is %q, want %q; ready: %v", got.Next, tt.next, got.Ready)
			}
			if strings.Contains(got.Next, "{") {
				t.Errorf("a name is missing in %q", got.Next)
			}
		})
	}
}

func TestEveryNodeHasItsRemedy(t *testing.T) {
	root := starting(machine("a", not(infrav1.InstanceReady, infrav1.BootstrapFailedReason)), machine("b", not(infrav1.InstanceReady, infrav1.InsufficientCapacityReason)), machine("c", met(infrav1.InstanceReady)))
	got := map[string]string{}
	root.Walk(func(n *Node, _ int) { got[n.Kind+" "+n.Name] = n.Remedy(root, epoch) })
	for node, want := range map[string]string{
		"PacketMachine a-device": "drover machine logs a-device", "PacketMachine b-device": "free a server", "Machine a": "see PacketMachine a-device, which it waits for",
	} {
		if !strings.Contains(got[node], want) {
			t.Errorf("%s: %q, want %q", node, got[node], want)
		}
	}
	if got["PacketMachine c-device"] != "" {
		t.Errorf("a device that is ready has the remedy %q", got["PacketMachine c-device"])
	}
}

func TestWhyAdvisesToWaitForNewObjects(t *testing.T) {
	fresh := starting(machine("a", is(infrav1.InstanceReady, metav1.ConditionFalse, infrav1.InstanceProvisionStartedReason, 1)))
	if got := Why(fresh, epoch); !strings.HasPrefix(got.Next, "wait: in progress for 1m0s") {
		t.Errorf("what to do is %q", got.Next)
	}
}

func TestTimelineMeasuresStages(t *testing.T) {
	root := object(kindCluster, "one", is(anywherev1.ControlPlaneInitialized, metav1.ConditionTrue, "Yes", 58), is(anywherev1.Ready, metav1.ConditionTrue, "Yes", 55),
		not(anywherev1.WorkersReady, "ScalingUp"))
	below(root, object(kindDevice, "a", is(infrav1.InstanceReady, metav1.ConditionTrue, "Yes", 59)), object(kindDevice, "b", is(infrav1.InstanceReady, metav1.ConditionTrue, "Yes", 57)))
	got := NewTimeline(root, nil)
	var stages []string
	for _, s := range got.Stages {
		stages = append(stages, s.Name+" "+time.Duration(s.Seconds*1e9).String())
	}
	want := []string{"created 0s", "first machine provisioned 1m0s", "API server available 1m0s", "ready 3m0s"}
	if diff := cmp.Diff(want, stages); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
	last := got.Entries[len(got.Entries)-1]
	if last.What != "not WorkersReady: ScalingUp of WorkersReady" || last.Seconds != 40*60 {
		t.Errorf("the last entry is %+v", last)
	}
}

func TestLinkStringIsOneLine(t *testing.T) {
	got := Link{Kind: kindMachine, Name: "a", Condition: "Ready", Message: "* Machine a:\n  * NodeHealthy: no"}.String()
	if want := "Machine a is not Ready: * Machine a: * NodeHealthy: no"; got != want {
		t.Errorf("the link is %q, want %q", got, want)
	}
}
