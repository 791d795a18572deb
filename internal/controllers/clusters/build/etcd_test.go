package build

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
)

const endpoints = "https://192.0.2.1:2379,https://192.0.2.2:2379,https://192.0.2.3:2379"

// external returns the input of a cluster with external etcd.
func external(t testing.TB, name string) Input {
	t.Helper()
	in := input(t, name)
	in.Config.Cluster.Spec.ExternalEtcdConfiguration = &anywherev1.ExternalEtcdConfiguration{Count: 3}
	if in.Config.Packet != nil {
		in.Config.Cluster.Spec.ExternalEtcdConfiguration.MachineGroupRef = &anywherev1.Ref{Kind: anywherev1.PacketMachineConfigKind, Name: "workers"}
	}
	return in
}

// healthy makes the etcd of a set exist and be ready.
func healthy(in *Input, set *Set) {
	if in.Now == nil {
		in.Now = &Existing{Workers: map[string]*clusterv1.MachineDeployment{}}
	}
	in.Now.Etcd, in.Now.Machines = set.Etcd.DeepCopy(), append(in.Now.Machines, set.Machines...)
	in.Now.Etcd.Generation, in.Now.Etcd.Status.ObservedGeneration = 1, 1
	in.Now.Etcd.Status.Endpoints = endpoints
	in.Now.Etcd.Status.Conditions = []metav1.Condition{{Type: clusterv1.ReadyCondition, Status: metav1.ConditionTrue}}
}

// running is the input of a cluster whose objects exist and are ready.
func running(t testing.TB) Input {
	in := external(t, "small")
	first := build(t, in)
	healthy(&in, first)
	second := build(t, in)
	in.Now = existingAfter(second)
	healthy(&in, second)
	return in
}

func TestControlPlaneWaitsForExternalEtcd(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Input)
		// held means that the control plane is left as it is.
		held bool
	}{
		"all is well":                         {func(*Input) {}, false},
		"etcd does not exist":                 {func(in *Input) { in.Now.Etcd = nil }, true},
		"etcd has no endpoints":               {func(in *Input) { in.Now.Etcd.Status.Endpoints = "" }, true},
		"a member is unhealthy":               {func(in *Input) { in.Now.Etcd.Status.Conditions[0].Status = metav1.ConditionFalse }, true},
		"etcd has not observed its spec":      {func(in *Input) { in.Now.Etcd.Generation = 2 }, true},
		"etcd gets another Kubernetes":        {func(in *Input) { in.Config.Cluster.Spec.KubernetesVersion = "1.35" }, true},
		"etcd gets other members":             {func(in *Input) { in.Config.Cluster.Spec.ExternalEtcdConfiguration.Count = 5 }, true},
		"only the control plane is different": {func(in *Input) { in.Config.Cluster.Spec.ControlPlaneConfiguration.Count = 2 }, false},
	} {
		for _, exists := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, control plane exists: %t", name, exists), func(t *testing.T) {
				in := running(t)
				if !exists {
					in.Now.ControlPlane = nil
				}
				tt.change(&in)
				set := build(t, in)
				if held := set.ControlPlane == nil; held != tt.held {
					t.Errorf("control plane is held: %t, want %t", held, tt.held)
				}
				if refers := set.Cluster.Spec.ControlPlaneRef.IsDefined(); refers != (exists || !tt.held) {
					t.Errorf("the Cluster refers to a control plane: %t", refers)
				}
				if set.Etcd == nil || !slices.Contains(names(set), "*v1beta1.EtcdadmCluster/"+set.Etcd.Name) {
					t.Errorf("no EtcdadmCluster in %v", names(set))
				}
			})
		}
	}
}

func TestClusterRefersToAControlPlaneThatExists(t *testing.T) {
	in := running(t)
	in.Now.ControlPlane = nil
	all := names(build(t, in))
	if i, j := slices.Index(all, "*v1beta2.KubeadmControlPlane/small"), slices.Index(all, "*v1beta2.Cluster/small"); i < 0 || i > j {
		t.Errorf("the Cluster is applied before its control plane: %v", all)
	}
}

func TestControlPlaneUsesExternalEtcd(t *testing.T) {
	set := build(t, running(t))
	want := bootstrapv1.ExternalEtcd{
		Endpoints: strings.Split(endpoints, ","),
		CAFile:    "/etc/kubernetes/pki/etcd/ca.crt", CertFile: "/etc/kubernetes/pki/apiserver-etcd-client.crt", KeyFile: "/etc/kubernetes/pki/apiserver-etcd-client.key",
	}
	config := set.ControlPlane.Spec.KubeadmConfigSpec
	if diff := cmp.Diff(want, config.ClusterConfiguration.Etcd.External); diff != "" {
		t.Errorf("etcd (-want +got):\n%s", diff)
	}
	for _, f := range config.Files {
		if strings.Contains(f.Path, "patches/etcd") {
			t.Errorf("file %q of stacked etcd", f.Path)
		}
	}
	if stacked := build(t, input(t, "small")); len(stacked.ControlPlane.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.Endpoints) != 0 || stacked.Etcd != nil {
		t.Error("a cluster without external etcd has one")
	}
}

func TestEtcdMachinesReachRegistriesAsNodesDo(t *testing.T) {
	in := external(t, "all")
	in.Config.Cluster.Spec.RegistryMirrorConfiguration = &anywherev1.RegistryMirrorConfiguration{Endpoint: "m.example.com", Authenticate: true}
	in.Config.Cluster.Spec.ProxyConfiguration = &anywherev1.ProxyConfiguration{HTTPProxy: "http://p.example.com:3128", HTTPSProxy: "http://p.example.com:3128"}
	etcd := build(t, in).Etcd
	if diff := cmp.Diff(corev1.ObjectReference{APIVersion: infrav1.GroupVersion.String(), Kind: "PacketMachineTemplate", Name: "all-etcd-1"}, etcd.Spec.InfrastructureTemplate); diff != "" {
		t.Errorf("template (-want +got):\n%s", diff)
	}
	config := etcd.Spec.EtcdadmConfigSpec
	if *etcd.Spec.Replicas != 3 || config.Version != "v1.36.3" || len(config.Users) == 0 || len(config.PreEtcdadmCommands) != len(restartContainerd) {
		t.Errorf("etcd %+v", etcd.Spec)
	}
	secrets, proxy := 0, false
	for _, f := range config.Files {
		if from := f.ContentFrom; from != nil && from.Secret.Name == "all-registry-mirror" && from.Secret.Key != "" && f.Content == "" {
			secrets++
		}
		proxy = proxy || f.Path == egressFile && strings.Contains(f.Content, "p.example.com")
	}
	if secrets != 2 || !proxy {
		t.Errorf("files %+v", config.Files)
	}
}

func TestEtcdReady(t *testing.T) {
	var e etcdv1.EtcdadmCluster
	if EtcdReady(&e) {
		t.Error("an etcd without a status is ready")
	}
	e.Spec.Replicas = ptr.To[int32](1)
	e.Status.Endpoints = endpoints
	e.Status.Conditions = []metav1.Condition{{Type: clusterv1.ReadyCondition, Status: metav1.ConditionTrue}}
	if !EtcdReady(&e) {
		t.Error("a healthy etcd is not ready")
	}
}
