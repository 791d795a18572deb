package cluster

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/operate/inspect"
)

// unready creates a cluster whose first machine does not start.
func (w *world) unready(name string) {
	w.Helper()
	meta := func(object string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: object, Labels: map[string]string{
			clusterv1.ClusterNameLabel: name, clusterv1.MachineDeploymentNameLabel: name + "-md-0",
		}}
	}
	unmet := func(kind, reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: metav1.Now()}}
	}
	c := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Spec: anywherev1.ClusterSpec{KubernetesVersion: "1.36", Management: ptr.To(false)}}
	w.create(c)
	c.Status.ObservedGeneration, c.Status.Conditions = c.Generation, append(
		unmet(anywherev1.WorkersReady, anywherev1.ScalingUpReason, "Scaling up worker nodes, 1 expected (0 actual)"),
		unmet(anywherev1.Ready, anywherev1.ScalingUpReason, "Scaling up worker nodes, 1 expected (0 actual)")...)
	w.must(w.client.Status().Update(w.Context(), c))

	infra := clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "PacketMachine", Name: name + "-m"}
	capi := &clusterv1.Cluster{ObjectMeta: meta(name), Spec: clusterv1.ClusterSpec{InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infra.APIGroup, Kind: "PacketCluster", Name: name}}}
	w.create(capi)
	capi.Status.Conditions = unmet(clusterv1.ClusterWorkersAvailableCondition, "NotAvailable", "no workers")
	w.must(w.client.Status().Update(w.Context(), capi))

	template := clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{ClusterName: name, Version: "v1.36.3", InfrastructureRef: infra, Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("x")}}}
	workers := &clusterv1.MachineDeployment{ObjectMeta: meta(name + "-md-0"), Spec: clusterv1.MachineDeploymentSpec{ClusterName: name, Template: template, Replicas: ptr.To[int32](1)}}
	workers.Spec.Selector.MatchLabels = map[string]string{clusterv1.ClusterNameLabel: name}
	workers.Spec.Template.Labels = workers.Spec.Selector.MatchLabels
	w.create(workers)
	workers.Status.Conditions = unmet(clusterv1.AvailableCondition, "NotAvailable", "0 of 1")
	w.must(w.client.Status().Update(w.Context(), workers))

	machine := &clusterv1.Machine{ObjectMeta: meta(name + "-m"), Spec: template.Spec}
	w.create(machine)
	machine.Status.Phase, machine.Status.Conditions = "Provisioning", unmet(clusterv1.InfrastructureReadyCondition, "NotReady", "no device")
	w.must(w.client.Status().Update(w.Context(), machine))

	device := &infrav1.PacketMachine{ObjectMeta: meta(name + "-m"), Spec: infrav1.PacketMachineSpec{OS: "ubuntu_24_04", BillingCycle: "hourly", MachineType: "local.small"}}
	w.create(device)
	device.Status.Conditions = unmet(infrav1.InstanceReady, infrav1.InsufficientCapacityReason, "no server is free")
	w.must(w.client.Status().Update(w.Context(), device))
	w.create(&corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, GenerateName: name}, Type: corev1.EventTypeWarning, Reason: "OrderRefused", Message: "no server is free",
		InvolvedObject: corev1.ObjectReference{Kind: "PacketMachine", Namespace: anywherev1.SystemNamespace, Name: name + "-m"}, LastTimestamp: metav1.Now(),
	})
}

func (w *world) create(o client.Object) {
	w.Helper()
	w.must(w.client.Create(w.Context(), o))
}

func TestUnreadyClusterIsShownWithItsCause(t *testing.T) {
	w := newWorld(t)
	w.unready("half")
	got := w.ok("get", "clusters", "-n", w.namespace)
	if l, err := line(got.out, w.namespace, "half", "1.36", "False (ScalingUp)"); err != nil {
		t.Errorf("%v %q in the table:\n%s", err, l, got.out)
	}
	got = w.ok("get", "machines", "--cluster", "half")
	if _, err := line(got.out, "half", "half-m", "worker", "v1.36.3", "Provisioning"); err != nil {
		t.Errorf("the machines are:\n%s", got.out)
	}
	got = w.ok("why", "cluster", "half")
	for _, want := range []string{
		"Cluster half is not WorkersReady: Scaling up worker nodes", "because Cluster API Cluster half", "because MachineDeployment half-md-0", "because Machine half-m is not InfrastructureReady",
		"because PacketMachine half-m is not InstanceReady: no server is free", "What to do: free a server",
	} {
		if !strings.Contains(got.out, want) {
			t.Errorf("why: got output without %q:\n%s", want, got.out)
		}
	}
	var answer inspect.Answer
	w.must(json.Unmarshal([]byte(w.ok("why", "cluster", "half", "-o", "json").out), &answer))
	if answer.Ready || len(answer.Chain) != 5 || answer.Deepest().Reason != infrav1.InsufficientCapacityReason {
		t.Errorf("the answer is %+v", answer)
	}
	got = w.ok("describe", "cluster", "half")
	for _, want := range []string{"Cluster/half", "    MachineDeployment/half-md-0", "      Machine/half-m", "✗ InstanceReady", "no server is free"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("describe: got output without %q:\n%s", want, got.out)
		}
	}
	got = w.ok("events", "cluster", "half")
	if _, err := line(got.out, "PacketMachine/half-m", "! OrderRefused: no server is free"); err != nil || !strings.Contains(got.out, "\ncreated ") {
		t.Errorf("the events are:\n%s", got.out)
	}
	w.fails([]string{`cluster "none" not found`}, "why", "cluster", "none")
	w.fails([]string{`cluster "none" not found`}, "get", "clusters", "none", "half")

	got = w.run(t.Context(), "__complete", "why", "cluster", "--kubeconfig", w.kubeconfig, "")
	if !strings.Contains(got.out, "half\tKubernetes 1.36 in "+w.namespace) {
		t.Errorf("a shell is offered:\n%s", got.out)
	}
	got = w.run(t.Context(), "__complete", "delete", "cluster", "--kubeconfig", w.kubeconfig, "")
	if !strings.Contains(got.out, "half\t") {
		t.Errorf("a shell is offered:\n%s", got.out)
	}
}

func TestNamespaceOfTheKubeconfigIsTheDefault(t *testing.T) {
	w := newWorld(t)
	w.unready("mine")
	w.create(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "look"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{anywherev1.GroupVersion.Group}, Resources: []string{"clusters"}, Verbs: []string{"get", "list", "watch"},
	}}})
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "look"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "look"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "creator"}},
	})
	config, err := clientcmd.LoadFromFile(w.kubeconfig)
	w.must(err)
	for _, user := range config.AuthInfos {
		user.Impersonate = "creator"
	}
	w.must(clientcmd.WriteToFile(*config, w.kubeconfig))
	w.fails([]string{"choose a namespace that you have access to"}, "get", "clusters")
	for _, context := range config.Contexts {
		context.Namespace = w.namespace
	}
	w.must(clientcmd.WriteToFile(*config, w.kubeconfig))
	for _, args := range [][]string{{"get", "clusters"}, {"describe", "cluster", "mine"}, {"delete", "cluster", "mine", "--dry-run"}} {
		if got := w.ok(args...); !strings.Contains(got.out, "mine") {
			t.Errorf("%v: got output:\n%s%s", args, got.out, got.err)
		}
	}
}

func TestGeneratedSpecIsValid(t *testing.T) {
	w := newWorld(t)
	for _, provider := range providers {
		got := w.run(t.Context(), "generate", "clusterconfig", "fresh", "-p", provider)
		w.must(os.WriteFile("fresh.yaml", []byte(got.out), 0o600))
		if got = w.run(t.Context(), "validate", "-f", "fresh.yaml"); got.code != 0 || !strings.Contains(got.out, "fresh.yaml is valid") {
			t.Errorf("what is generated for %s is refused:\n%s%s", provider, got.out, got.err)
		}
	}
	old := w.spec("old", replacing("management: false", "management: true"), replacing(`"1.36"`, `"1.31"`))
	for _, command := range [][]string{{"validate"}, {"create", "cluster"}} {
		got := w.run(t.Context(), append(command, "-f", old)...)
		if got.code != 1 || !strings.Contains(got.out+got.err, "unsupported Kubernetes version 1.31") {
			t.Errorf("%v of a management cluster that can't be made ends with %d:\n%s%s", command, got.code, got.out, got.err)
		}
	}
	if got := w.run(t.Context(), "generate", "clusterconfig", "fresh", "-p", "vsphere"); got.code != 2 || !strings.Contains(got.err, "docker, packet") {
		t.Errorf("another provider ends with %d:\n%s", got.code, got.err)
	}
}

func TestValidationReportsEveryProblem(t *testing.T) {
	w := newWorld(t)
	file := w.spec("wrong", replacing("count: 1 #", "count: 2 #"), replacing("count: 1\n", "count: -1\n"))
	for _, command := range [][]string{{"validate"}, {"exp", "validate", "create", "cluster"}} {
		got := w.run(t.Context(), append(command, "-f", file)...)
		if got.code != 1 || !strings.Contains(got.out, "controlPlaneConfiguration.count") || !strings.Contains(got.out, "workerNodeGroupConfigurations") {
			t.Errorf("%v ends with %d:\n%s%s", command, got.code, got.out, got.err)
		}
	}
	var v verdict
	w.must(json.Unmarshal([]byte(w.run(t.Context(), "validate", "-f", file, "-o", "json").out), &v))
	if v.Valid || len(v.Violations) < 2 {
		t.Errorf("the verdict is %+v", v)
	}
	w.fails([]string{"controlPlaneConfiguration.count", "workerNodeGroupConfigurations"}, "create", "cluster", "-f", file)
}

func TestReadiness(t *testing.T) {
	c := &anywherev1.Cluster{}
	c.Generation = 2
	for _, tt := range []struct {
		change func()
		want   string
	}{
		{func() {}, "Unknown"},
		{func() {
			c.Status.ObservedGeneration = 2
			apimeta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: anywherev1.Ready, Status: metav1.ConditionTrue})
		}, "True"},
		{func() { c.Generation = 3 }, "Unknown"},
		{func() { c.Annotations = map[string]string{anywherev1.PausedAnnotation: "true"} }, "Paused"},
		{func() { c.DeletionTimestamp = ptr.To(metav1.Now()) }, "Deleting"},
	} {
		tt.change()
		if got := readiness(c); got != tt.want {
			t.Errorf("readiness is %q, want %q", got, tt.want)
		}
	}
}
