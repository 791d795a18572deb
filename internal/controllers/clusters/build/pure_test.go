package build

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/controllers/clusters/encryption"
	"github.com/drover-dev/drover/internal/model/demand"
	"github.com/drover-dev/drover/internal/model/spec"
)

// local returns a builder of a cluster with local machines, after a change of its spec.
func local(change func(*anywherev1.ClusterSpec)) *builder {
	c := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "dev"}}
	change(&c.Spec)
	return &builder{Input: Input{Config: &spec.Config{Cluster: c}, Now: &Existing{}}, cluster: c, set: &Set{}}
}

func TestAddressOfAMirror(t *testing.T) {
	for _, tt := range []struct{ endpoint, port, want string }{
		{"mirror.example.com", "", "mirror.example.com"},
		{"mirror.example.com", "443", "mirror.example.com"},
		{"mirror.example.com", "5000", "mirror.example.com:5000"},
		{"192.0.2.1", "443", "192.0.2.1"},
		{"2001:db8::1", "5000", "[2001:db8::1]:5000"},
		{"2001:db8::1", "443", "[2001:db8::1]"},
		{"2001:db8::1", "", "[2001:db8::1]"},
	} {
		if got := (&anywherev1.RegistryMirrorConfiguration{Endpoint: tt.endpoint, Port: tt.port}).Address(); got != tt.want {
			t.Errorf("%s and port %q: %q, want %q", tt.endpoint, tt.port, got, tt.want)
		}
	}
}

func TestRegistriesOfAMirror(t *testing.T) {
	const head = "server = \"https://m.example.com\"\n\n[host.\"https://m.example.com\"]\n  capabilities = [\"pull\", \"resolve\"]\n"
	for name, tt := range map[string]struct {
		mirror anywherev1.RegistryMirrorConfiguration
		want   []mirrored
	}{
		"all registries": {
			anywherev1.RegistryMirrorConfiguration{Endpoint: "m.example.com"},
			[]mirrored{{"m.example.com", head}, {"_default", head}},
		},
		"some of them, below a path": {
			anywherev1.RegistryMirrorConfiguration{Endpoint: "m.example.com", OCINamespaces: []anywherev1.OCINamespace{{Registry: "quay.io", Namespace: "/quay/"}, {Registry: "ghcr.io"}}},
			[]mirrored{
				{"m.example.com", head},
				{"quay.io", "server = \"https://m.example.com\"\n\n[host.\"https://m.example.com/v2/quay\"]\n  capabilities = [\"pull\", \"resolve\"]\n  override_path = true\n"},
				{"ghcr.io", head},
			},
		},
		"a certificate and none": {
			anywherev1.RegistryMirrorConfiguration{Endpoint: "m.example.com", CACertContent: "PEM", InsecureSkipVerify: true},
			[]mirrored{
				{"m.example.com", head + "  ca = \"/etc/containerd/certs.d/m.example.com/ca.crt\"\n  skip_verify = true\n"},
				{"_default", head + "  ca = \"/etc/containerd/certs.d/m.example.com/ca.crt\"\n  skip_verify = true\n"},
			},
		},
		"credentials": {
			anywherev1.RegistryMirrorConfiguration{Endpoint: "m.example.com", Authenticate: true},
			[]mirrored{
				{"m.example.com", head + "  [host.\"https://m.example.com\".header]\n    authorization = [\"Basic dTpw\"]\n"},
				{"_default", head + "  [host.\"https://m.example.com\".header]\n    authorization = [\"Basic dTpw\"]\n"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := local(func(*anywherev1.ClusterSpec) {})
			b.Registry = &Credentials{Username: "u", Password: "p"}
			if diff := cmp.Diff(tt.want, b.registries(&tt.mirror), cmp.AllowUnexported(mirrored{})); diff != "" {
				t.Errorf("registries (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCredentialsOfAMirrorAreInASecretOnly(t *testing.T) {
	b := local(func(s *anywherev1.ClusterSpec) {
		s.RegistryMirrorConfiguration = &anywherev1.RegistryMirrorConfiguration{Endpoint: "m.example.com", Authenticate: true}
	})
	var unsupported *UnsupportedError
	if err := b.secrets(); !errors.As(err, &unsupported) || unsupported.Path != "spec.registryMirrorConfiguration.authenticate" {
		t.Errorf("error %v without credentials", err)
	}
	b.Registry = &Credentials{Username: "u", Password: "hunter22"}
	m := &machines{}
	if err := errors.Join(b.secrets(), b.mirror(m)); err != nil {
		t.Fatal(err)
	}
	if len(b.set.Secrets) != 1 || len(b.set.Secrets[0].Data) != 2 {
		t.Fatalf("secrets %v", b.set.Secrets)
	}
	for _, f := range m.config.Files {
		if f.Content != "" || f.ContentFrom.Secret.Name != b.set.Secrets[0].Name || b.set.Secrets[0].Data[f.ContentFrom.Secret.Key] == nil {
			t.Errorf("file %+v", f)
		}
	}
	if diff := cmp.Diff(restartContainerd, m.config.PreKubeadmCommands); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

func TestCommandsRunOnce(t *testing.T) {
	m := &machines{}
	m.restart("a", "b")
	m.restart("b", "c")
	if diff := cmp.Diff([]string{"a", "b", "c"}, m.config.PreKubeadmCommands); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

func TestDestinationsWithoutProxy(t *testing.T) {
	b := local(func(s *anywherev1.ClusterSpec) {
		s.ProxyConfiguration = &anywherev1.ProxyConfiguration{NoProxy: []string{"10.0.0.0/8", "localhost", ""}}
		s.ClusterNetwork.Pods.CidrBlocks = []string{"192.168.0.0/16"}
		s.ClusterNetwork.Services.CidrBlocks = []string{"10.96.0.0/12"}
		s.ControlPlaneConfiguration.Endpoint = &anywherev1.Endpoint{Host: "192.0.2.10"}
		s.RegistryMirrorConfiguration = &anywherev1.RegistryMirrorConfiguration{Endpoint: "m.example.com"}
	})
	want := []string{"10.0.0.0/8", "localhost", "192.168.0.0/16", "10.96.0.0/12", "127.0.0.1", ".svc", ".cluster.local", "192.0.2.10", "m.example.com"}
	if diff := cmp.Diff(want, b.direct()); diff != "" {
		t.Errorf("destinations (-want +got):\n%s", diff)
	}
	b.cluster.Spec.ControlPlaneConfiguration.Endpoint = &anywherev1.Endpoint{}
	b.cluster.Spec.RegistryMirrorConfiguration = nil
	if diff := cmp.Diff(want[:7], b.direct()); diff != "" {
		t.Errorf("destinations without endpoint and mirror (-want +got):\n%s", diff)
	}
}

func TestUnique(t *testing.T) {
	for _, tt := range []struct{ in, want []string }{
		{nil, nil}, {[]string{""}, []string{}}, {[]string{"b", "a", "b", "", "a"}, []string{"b", "a"}},
	} {
		if diff := cmp.Diff(tt.want, unique(tt.in)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.in, diff)
		}
	}
}

func TestPatienceOfHealthChecks(t *testing.T) {
	minutes := func(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Minute} }
	defaults := patience{startup: startupTimeout, unhealthy: unhealthyTimeout, most: intstr.FromString("40%")}
	for name, tt := range map[string]struct {
		settings []*anywherev1.MachineHealthCheck
		want     patience
	}{
		"the defaults": {[]*anywherev1.MachineHealthCheck{nil, nil}, defaults},
		"of the cluster": {
			[]*anywherev1.MachineHealthCheck{{NodeStartupTimeout: minutes(20)}, nil},
			patience{startup: 20 * time.Minute, unhealthy: unhealthyTimeout, most: intstr.FromString("40%")},
		},
		"a group wins field by field": {
			[]*anywherev1.MachineHealthCheck{{NodeStartupTimeout: minutes(20), UnhealthyMachineTimeout: minutes(7)}, {UnhealthyMachineTimeout: minutes(1), MaxUnhealthy: ptr.To(intstr.FromInt32(2))}},
			patience{startup: 20 * time.Minute, unhealthy: time.Minute, most: intstr.FromInt32(2)},
		},
	} {
		if diff := cmp.Diff(tt.want, settlePatience("40%", tt.settings...), cmp.AllowUnexported(patience{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestKubeletPatch(t *testing.T) {
	for name, tt := range map[string]struct {
		raw, resolv, want string
	}{
		"nothing":                      {"", "", ""},
		"only the type":                {`{"apiVersion":"kubelet.config.k8s.io/v1beta1","kind":"KubeletConfiguration"}`, "", ""},
		"settings":                     {`{"kind":"KubeletConfiguration","maxPods":50}`, "", `{"maxPods":50}`},
		"the resolver of the cluster":  {"", "/run/resolv.conf", `{"resolvConf":"/run/resolv.conf"}`},
		"the group's own resolver":     {`{"resolvConf":"/own"}`, "/run/resolv.conf", `{"resolvConf":"/own"}`},
		"numbers keep their precision": {`{"evictionMaxPodGracePeriod":-1}`, "", `{"evictionMaxPodGracePeriod":-1}`},
	} {
		t.Run(name, func(t *testing.T) {
			b := local(func(s *anywherev1.ClusterSpec) {
				if tt.resolv != "" {
					s.ClusterNetwork.DNS.ResolvConf = &anywherev1.ResolvConf{Path: tt.resolv}
				}
			})
			m := &machines{kubelet: &runtime.RawExtension{Raw: []byte(tt.raw)}}
			if err := b.kubelet(m); err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, f := range m.config.Files {
				got += strings.TrimSuffix(f.Content, "\n")
				if f.Path != "/etc/kubernetes/patches/kubeletconfiguration0+merge.json" || m.config.InitConfiguration.Patches.Directory != patchesDir {
					t.Errorf("file %+v", f)
				}
			}
			if got != tt.want {
				t.Errorf("patch %s, want %s", got, tt.want)
			}
		})
	}
	if err := local(func(*anywherev1.ClusterSpec) {}).kubelet(&machines{kubelet: &runtime.RawExtension{Raw: []byte("[")}}); err == nil {
		t.Error("a broken configuration is accepted")
	}
}

func TestArgumentsOfUsersWin(t *testing.T) {
	b := local(func(s *anywherev1.ClusterSpec) {
		s.ControlPlaneConfiguration.APIServerExtraArgs = map[string]string{"v": "4", "audit-log-maxage": "7"}
	})
	m := &machines{}
	m.apiServer([2]string{"audit-log-maxage", "30"}, [2]string{"audit-log-path", "/log"}, [2]string{"skipped", ""})
	if err := b.apiServerArguments(m); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, a := range m.config.ClusterConfiguration.APIServer.ExtraArgs {
		if _, twice := got[a.Name]; twice {
			t.Errorf("--%s is set twice", a.Name)
		}
		got[a.Name] = *a.Value
	}
	if diff := cmp.Diff(map[string]string{"audit-log-maxage": "7", "audit-log-path": "/log", "v": "4"}, got); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
}

func TestEncryption(t *testing.T) {
	b := local(func(s *anywherev1.ClusterSpec) {
		s.EtcdEncryption = []anywherev1.EtcdEncryption{{
			Resources: []string{"secrets"},
			Providers: []anywherev1.EtcdEncryptionProvider{{}, {KMS: &anywherev1.KMS{Name: "k", SocketListenAddress: "unix:///var/run/kms/socket.sock", Timeout: &metav1.Duration{Duration: 3 * time.Second}}}},
		}}
	})
	m := &machines{}
	if err := b.encryption(m); err != nil {
		t.Fatal(err)
	}
	want := `apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- providers:
  - kms:
      apiVersion: v2
      endpoint: unix:///var/run/kms/socket.sock
      name: k
      timeout: 3s
  - identity: {}
  resources:
  - secrets
`
	if diff := cmp.Diff(want, m.config.Files[0].Content); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	var mounts []string
	for _, v := range m.config.ClusterConfiguration.APIServer.ExtraVolumes {
		mounts = append(mounts, v.Name+" "+v.HostPath)
	}
	if diff := cmp.Diff([]string{"encryption-config /etc/kubernetes/enc", "encryption-plugin-0 /var/run/kms"}, mounts); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
	none := &machines{}
	if err := local(func(*anywherev1.ClusterSpec) {}).encryption(none); err != nil || len(none.config.Files) != 0 {
		t.Errorf("files %v without encryption, error %v", none.config.Files, err)
	}
}

func TestEncryptionKeysAreInASecretOnly(t *testing.T) {
	b := local(func(s *anywherev1.ClusterSpec) {
		s.EtcdEncryption = []anywherev1.EtcdEncryption{{Resources: []string{"secrets"}, Providers: []anywherev1.EtcdEncryptionProvider{{Secretbox: &anywherev1.Secretbox{}}}}}
	})
	b.Encryption = &encryption.Source{Secret: "dev-encryption", Key: "config-7.yaml", Sockets: []string{"/run/vault"}}
	m := &machines{}
	if err := b.encryption(m); err != nil {
		t.Fatal(err)
	}
	file := bootstrapv1.File{Path: "/etc/kubernetes/enc/encryption-config.yaml", Owner: "root:root", Permissions: "0600"}
	file.ContentFrom.Secret = bootstrapv1.SecretFileSource{Name: "dev-encryption", Key: "config-7.yaml"}
	if diff := cmp.Diff([]bootstrapv1.File{file}, m.config.Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	api := m.config.ClusterConfiguration.APIServer
	if len(api.ExtraVolumes) != 2 || api.ExtraVolumes[1].HostPath != "/run/vault" || len(api.ExtraArgs) != 1 || *api.ExtraArgs[0].Value != file.Path {
		t.Errorf("API servers with %+v", api)
	}
	b.Encryption = nil
	if err := b.encryption(&machines{}); err != nil {
		t.Errorf("without keys: %v", err)
	}
}

func TestOIDC(t *testing.T) {
	b := local(func(s *anywherev1.ClusterSpec) {
		s.IdentityProviderRefs = []anywherev1.Ref{{Kind: "OIDCConfig", Name: "missing"}, {Kind: "OIDCConfig", Name: "sso"}}
	})
	b.Config.OIDC = map[string]*anywherev1.OIDCConfig{"sso": {Spec: anywherev1.OIDCConfigSpec{
		IssuerURL: "https://sso.example.com", ClientID: "drover", GroupsClaim: "groups",
		RequiredClaims: []anywherev1.OIDCConfigRequiredClaim{{Claim: "hd", Value: "example.com"}},
	}}}
	m := &machines{}
	if err := b.oidc(m); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range m.config.ClusterConfiguration.APIServer.ExtraArgs {
		got = append(got, a.Name+"="+*a.Value)
	}
	want := []string{"oidc-issuer-url=https://sso.example.com", "oidc-client-id=drover", "oidc-groups-claim=groups", "oidc-required-claim=hd=example.com"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
}

func TestIssuerOfPodsIsSetOnce(t *testing.T) {
	b := local(func(s *anywherev1.ClusterSpec) {
		s.PodIAMConfig = &anywherev1.PodIAMConfig{ServiceAccountIssuer: "https://keys.example.com/prod"}
	})
	b.Version = func(string) (string, error) { return "v1.36.3", nil }
	m := &machines{}
	if err := b.configure(m, controlPlanes); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range m.config.ClusterConfiguration.APIServer.ExtraArgs {
		if a.Name == "service-account-issuer" {
			got = append(got, *a.Value)
		}
	}
	want := []string{"https://keys.example.com/prod"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("issuers (-want +got):\n%s", diff)
	}
}

func TestStartupProbesOfEveryComponent(t *testing.T) {
	m := &machines{}
	if err := local(func(*anywherev1.ClusterSpec) {}).startupProbes(m); err != nil {
		t.Fatal(err)
	}
	if len(m.config.Files) != len(components) {
		t.Fatalf("%d patches of %d components", len(m.config.Files), len(components))
	}
	for i, f := range m.config.Files {
		var patch struct{ Spec corev1.PodSpec }
		if err := json.Unmarshal([]byte(f.Content), &patch); err != nil {
			t.Fatal(err)
		}
		probe := patch.Spec.Containers[0].StartupProbe
		if f.Path != patchesDir+"/"+components[i]+"0+strategic.json" || patch.Spec.Containers[0].Name != components[i] ||
			time.Duration(probe.PeriodSeconds*probe.FailureThreshold)*time.Second != startupLimit {
			t.Errorf("%s: %s", f.Path, f.Content)
		}
	}
}

func TestOvertakes(t *testing.T) {
	for _, tt := range []struct {
		target, present string
		want            bool
	}{
		{"v1.36.1", "v1.35.4", true}, {"v1.36.1", "v1.36.1", false}, {"v1.35.4", "v1.36.1", false}, {"v1.36.1", "", false}, {"new", "v1.35.4", false}, {"v1.36.1", "old", false},
	} {
		now := &Existing{ControlPlane: &controlplanev1.KubeadmControlPlane{}}
		now.ControlPlane.Status.Version = tt.present
		if got := isNewerThanControlPlane(tt.target, now); got != tt.want {
			t.Errorf("workers with %q and a control plane with %q: %t", tt.target, tt.present, got)
		}
	}
	if isNewerThanControlPlane("v1.36.1", &Existing{}) {
		t.Error("workers of a new cluster overtake its control plane")
	}
}

func TestChoiceOfTemplates(t *testing.T) {
	template := func(name, sum string) client.Object {
		return &infrav1.PacketMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{ContentAnnotation: sum}}}
	}
	for name, tt := range map[string]struct {
		used     string
		existing []client.Object
		want     string
	}{
		"the first one":                  {"", nil, "dev-md-0-1"},
		"the current one":                {"dev-md-0-2", []client.Object{template("dev-md-0-1", "same"), template("dev-md-0-2", "same"), template("dev-md-0-3", "same")}, "dev-md-0-2"},
		"the latest of the same content": {"", []client.Object{template("dev-md-0-1", "same"), template("dev-md-0-2", "same"), template("dev-md-0-3", "other")}, "dev-md-0-2"},
		"a new one":                      {"dev-md-0-2", []client.Object{template("dev-md-0-1", "other"), template("dev-md-0-2", "other")}, "dev-md-0-3"},
		"one that a cache does not have": {"dev-md-0-7", nil, "dev-md-0-8"},
		"those of other groups":          {"", []client.Object{template("dev-md-0-x-9", "same"), template("other-md-0-9", "same"), template("dev-md-0-09", "same")}, "dev-md-0-1"},
	} {
		if got := (choice{cluster: "dev", group: "md-0", sum: "same", used: tt.used}).name(tt.existing); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

func TestStamps(t *testing.T) {
	of := func(o client.Object) string {
		t.Helper()
		if err := stamp(o); err != nil {
			t.Fatal(err)
		}
		return o.GetAnnotations()[ContentAnnotation]
	}
	secret := func(password string) *corev1.Secret {
		return &corev1.Secret{Data: map[string][]byte{"password": []byte(password)}}
	}
	if of(secret("a")) != of(secret("b")) || of(secret("a")) == "" {
		t.Error("the stamp of a Secret depends on its content, want that it doesn't")
	}
	cluster := func(name string) *infrav1.PacketCluster {
		return &infrav1.PacketCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"kept": "x"}}}
	}
	a := cluster("a")
	if of(a) == of(cluster("b")) || a.Annotations["kept"] != "x" {
		t.Errorf("annotations %v", a.Annotations)
	}
	if of(&bootstrapv1.KubeadmConfigTemplate{}) != "" {
		t.Error("a template is stamped twice")
	}
}

func TestUnsupportedSpecs(t *testing.T) {
	for want, change := range map[string]func(*anywherev1.ClusterSpec){
		"spec.workerNodeGroupConfigurations[1].name: the name control-plane is that of the control plane's templates; choose another": func(s *anywherev1.ClusterSpec) {
			s.WorkerNodeGroupConfigurations = []anywherev1.WorkerNodeGroupConfiguration{{Name: "a"}, {Name: "control-plane"}}
		},
	} {
		if err := local(change).check(); err == nil || err.Error() != want {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	b := local(func(*anywherev1.ClusterSpec) {})
	b.Config.Packet = &anywherev1.PacketDatacenterConfig{}
	for want, ref := range map[string]*anywherev1.Ref{
		"machineGroupRef: machines of Packet need a PacketMachineConfig": nil,
		"machineGroupRef: PacketMachineConfig big not found":             {Name: "big"},
	} {
		if _, err := b.machineSpec(ref); err == nil || err.Error() != want {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestMachineSpec(t *testing.T) {
	b := local(func(*anywherev1.ClusterSpec) {})
	got, err := b.machineSpec(nil)
	if diff := cmp.Diff(infrav1.PacketMachineSpec{OS: localOS, BillingCycle: "hourly", MachineType: demand.LocalPlan}, got); diff != "" || err != nil {
		t.Errorf("local machines, error %v (-want +got):\n%s", err, diff)
	}
	b.Config.Packet = &anywherev1.PacketDatacenterConfig{}
	b.Config.Machines = map[string]*anywherev1.PacketMachineConfig{"big": {Spec: anywherev1.PacketMachineConfigSpec{
		OS: "debian_12", MachineType: "m3.large.x86", SSHKeys: []string{"k"}, Tags: []string{"t"}, HardwareReservationID: "next-available",
		Users: []anywherev1.UserConfiguration{{Name: "ops", SSHAuthorizedKeys: []string{"k"}}},
	}}}
	got, err = b.machineSpec(&anywherev1.Ref{Name: "big"})
	want := infrav1.PacketMachineSpec{OS: "debian_12", BillingCycle: "hourly", MachineType: "m3.large.x86", SSHKeys: []string{"k"}, Tags: []string{"t"}, HardwareReservationID: "next-available"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("machines of Packet, error %v (-want +got):\n%s", err, diff)
	}
	m := &machines{ref: &anywherev1.Ref{Name: "big"}}
	if err := b.users(m); err != nil || len(m.config.Users) != 1 || m.config.Users[0].Name != "ops" || m.config.Users[0].Sudo == "" {
		t.Errorf("users %+v, error %v", m.config.Users, err)
	}
}

func TestNodeRegistration(t *testing.T) {
	m := &machines{labels: map[string]string{"b": "2", "a": "1", "node-role.kubernetes.io/worker": ""}}
	var got []string
	for _, a := range m.node().KubeletExtraArgs {
		got = append(got, a.Name+"="+*a.Value)
	}
	if diff := cmp.Diff([]string{"provider-id=equinixmetal://{{ v1.instance_id }}", "node-labels=a=1,b=2"}, got); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	if args := (&machines{}).node().KubeletExtraArgs; len(args) != 1 {
		t.Errorf("arguments %v without labels", args)
	}
}

func TestServersOfManagementClustersIdentifyThemselvesToWebhooks(t *testing.T) {
	controlPlane := func(version string, files ...bootstrapv1.File) *Existing {
		k := &controlplanev1.KubeadmControlPlane{Spec: controlplanev1.KubeadmControlPlaneSpec{Version: version}}
		k.Spec.KubeadmConfigSpec.Files = files
		return &Existing{ControlPlane: k}
	}
	for name, tc := range map[string]struct {
		managed bool
		now     *Existing
		want    int
	}{
		"a workload cluster":                             {true, &Existing{}, 0},
		"a management cluster without a control plane":   {false, &Existing{}, 2},
		"an older management cluster":                    {false, controlPlane("v1.36.3"), 0},
		"an older management cluster, upgraded":          {false, controlPlane("v1.35.4"), 2},
		"a management cluster that has the certificates": {false, controlPlane("v1.36.3", bootstrapv1.File{Path: config.AdmissionFile}), 2},
		"a management cluster with a file of its own":    {false, controlPlane("v1.36.3", bootstrapv1.File{Path: "/etc/mine.yaml"}), 0},
	} {
		m := &machines{}
		b := local(func(s *anywherev1.ClusterSpec) { s.Management = ptr.To(!tc.managed) })
		b.Now, b.Version = tc.now, func(string) (string, error) { return "v1.36.3", nil }
		if err := b.webhooks(m); err != nil {
			t.Fatal(err)
		}
		if n := len(m.config.Files); n != tc.want {
			t.Errorf("%s: %d files", name, n)
		}
		if n := len(m.config.ClusterConfiguration.APIServer.ExtraArgs); n != tc.want/2 {
			t.Errorf("%s: %d arguments", name, n)
		}
	}
}
