package spec_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
)

func TestClusterDefaults(t *testing.T) {
	for name, test := range map[string]struct{ given, want anywherev1.ClusterSpec }{
		"nothing": {
			anywherev1.ClusterSpec{},
			anywherev1.ClusterSpec{ManagementCluster: anywherev1.ManagementCluster{Name: "a"}, ClusterNetwork: defaultNetwork()},
		},
		"a workload cluster": {
			anywherev1.ClusterSpec{Management: ptr.To(false)},
			anywherev1.ClusterSpec{Management: ptr.To(false), ClusterNetwork: defaultNetwork()},
		},
		"groups": {
			anywherev1.ClusterSpec{WorkerNodeGroupConfigurations: []anywherev1.WorkerNodeGroupConfiguration{
				{}, {Name: "scaled", AutoScalingConfiguration: &anywherev1.AutoScalingConfiguration{MinCount: 3, MaxCount: 5}}, {Name: "none", Count: ptr.To(0)},
			}},
			anywherev1.ClusterSpec{
				ManagementCluster: anywherev1.ManagementCluster{Name: "a"}, ClusterNetwork: defaultNetwork(),
				WorkerNodeGroupConfigurations: []anywherev1.WorkerNodeGroupConfiguration{
					{Name: "md-0", Count: ptr.To(1)},
					{Name: "scaled", Count: ptr.To(3), AutoScalingConfiguration: &anywherev1.AutoScalingConfiguration{MinCount: 3, MaxCount: 5}},
					{Name: "none", Count: ptr.To(0)},
				},
			},
		},
		"a mirror and encryption": {
			anywherev1.ClusterSpec{
				RegistryMirrorConfiguration: &anywherev1.RegistryMirrorConfiguration{},
				EtcdEncryption:              []anywherev1.EtcdEncryption{{Providers: []anywherev1.EtcdEncryptionProvider{{}, {KMS: &anywherev1.KMS{}}}}},
			},
			anywherev1.ClusterSpec{
				ManagementCluster: anywherev1.ManagementCluster{Name: "a"}, ClusterNetwork: defaultNetwork(),
				RegistryMirrorConfiguration: &anywherev1.RegistryMirrorConfiguration{Port: "443"},
				EtcdEncryption: []anywherev1.EtcdEncryption{{Providers: []anywherev1.EtcdEncryptionProvider{
					{}, {KMS: &anywherev1.KMS{CacheSize: ptr.To[int32](1000), Timeout: &metav1.Duration{Duration: 3 * time.Second}}},
				}}},
			},
		},
		"the old way to name a network": {
			anywherev1.ClusterSpec{ClusterNetwork: anywherev1.ClusterNetwork{CNI: "kindnetd"}},
			anywherev1.ClusterSpec{ManagementCluster: anywherev1.ManagementCluster{Name: "a"}, ClusterNetwork: anywherev1.ClusterNetwork{
				Pods: defaultNetwork().Pods, Services: defaultNetwork().Services, CNIConfig: &anywherev1.CNIConfig{Kindnetd: &anywherev1.KindnetdConfig{}},
			}},
		},
	} {
		c := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: test.given}
		spec.DefaultCluster(c)
		if diff := cmp.Diff(test.want, c.Spec, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if c.Namespace != "default" || c.Kind != "Cluster" || c.APIVersion != "anywhere.eks.amazonaws.com/v1alpha1" {
			t.Errorf("%s: it is %s %s in %q", name, c.APIVersion, c.Kind, c.Namespace)
		}
	}
}

func defaultNetwork() anywherev1.ClusterNetwork {
	return anywherev1.ClusterNetwork{
		Pods:      anywherev1.Pods{CidrBlocks: []string{"192.168.0.0/16"}},
		Services:  anywherev1.Services{CidrBlocks: []string{"10.96.0.0/12"}},
		CNIConfig: &anywherev1.CNIConfig{Cilium: &anywherev1.CiliumConfig{}},
	}
}

func TestDefaultsOfReferencedObjects(t *testing.T) {
	c := config(t, base(t, "packet"))
	if c.Packet.Spec.CredentialsRef.Name != "packet-credentials" || c.Packet.CredentialsName() != "packet-credentials" {
		t.Errorf("credentials are %q", c.Packet.Spec.CredentialsRef.Name)
	}
	if c.Machines["small"].Spec.BillingCycle != "hourly" || c.Machines["large"].Spec.BillingCycle != "monthly" {
		t.Errorf("billing cycles are %q and %q", c.Machines["small"].Spec.BillingCycle, c.Machines["large"].Spec.BillingCycle)
	}
	want := anywherev1.FluxConfigSpec{
		SystemNamespace: "flux-system", ClusterConfigPath: "clusters/mgmt", Branch: "main",
		Git: &anywherev1.GitProviderConfig{RepositoryURL: "ssh://git@git.example.com/team/fleet.git", SSHKeyAlgorithm: "ecdsa"},
	}
	if diff := cmp.Diff(want, c.Flux.Spec); diff != "" {
		t.Errorf("FluxConfig (-want +got):\n%s", diff)
	}
	older := &spec.Config{Cluster: c.Cluster, GitOps: &anywherev1.GitOpsConfig{ObjectMeta: metav1.ObjectMeta{Name: "fleet"}}}
	spec.Default(older)
	got := older.GitOps.FluxConfig()
	if older.GitOps.Namespace != "team-a" || got.Spec.Branch != "main" || got.Spec.SystemNamespace != "flux-system" || got.Spec.ClusterConfigPath != "clusters/mgmt" {
		t.Errorf("GitOpsConfig in %q became %+v", older.GitOps.Namespace, got.Spec)
	}
}

func TestObjectsAreInOrderOfApplication(t *testing.T) {
	var got []string
	for _, o := range config(t, base(t, "packet")).Objects() {
		got = append(got, o.GetObjectKind().GroupVersionKind().Kind+"/"+o.GetName())
	}
	want := []string{"PacketDatacenterConfig/dallas", "PacketMachineConfig/large", "PacketMachineConfig/small", "FluxConfig/fleet", "OIDCConfig/corp", "Cluster/prod"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestMarshalRoundTrip(t *testing.T) {
	for _, name := range []string{"docker", "packet"} {
		c := config(t, base(t, name))
		c.Ignored = nil
		c.Cluster.Status.ControlPlane = "3/3"
		written, err := spec.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if c.Cluster.Status.ControlPlane == "" {
			t.Errorf("%s: writing a file changed the cluster", name)
		}
		c.Cluster.Status = anywherev1.ClusterStatus{}
		again, err := spec.Read(written)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, written)
		}
		if diff := cmp.Diff(c, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-written +read):\n%s\n%s", name, diff, written)
		}
	}
}

func TestDefaultFluxLeavesOutNothingThatIsKnown(t *testing.T) {
	short := anywherev1.FluxConfigSpec{ClusterConfigPath: "clusters/mgmt", Git: &anywherev1.GitProviderConfig{RepositoryURL: "ssh://git@git.example.com/fleet.git"}}
	long := anywherev1.FluxConfigSpec{
		SystemNamespace: "flux-system", ClusterConfigPath: "clusters/mgmt", Branch: "main",
		Git: &anywherev1.GitProviderConfig{RepositoryURL: "ssh://git@git.example.com/fleet.git", SSHKeyAlgorithm: "ecdsa"},
	}
	for name, s := range map[string]anywherev1.FluxConfigSpec{"the short form": short, "the long form": long} {
		if diff := cmp.Diff(long, spec.DefaultFlux(s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if short.Git.SSHKeyAlgorithm != "" {
		t.Error("the argument was changed")
	}
}
