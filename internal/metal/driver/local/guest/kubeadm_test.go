package guest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

func TestPatchConfig(t *testing.T) {
	const cluster = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n"
	for name, tt := range map[string]struct {
		in   string
		v    cgroupVersion
		want []map[string]any
	}{
		"both halves are added": {in: cluster, v: cgroupV1, want: []map[string]any{
			{"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration"},
			{"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "conntrack": map[string]any{"maxPerCore": 0}},
			{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "failCgroupV1": false},
		}},
		"cgroups of version 2 need no word": {in: cluster, v: cgroupV2, want: []map[string]any{
			{"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration"},
			{"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "conntrack": map[string]any{"maxPerCore": 0}},
		}},
		"what is said stays": {in: "---\n" + cluster + "---\nkind: KubeProxyConfiguration\nmode: nftables\nconntrack: {maxPerCore: 7}\n---\nkind: KubeletConfiguration\nfailCgroupV1: true\n", v: cgroupV1, want: []map[string]any{
			{"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration"},
			{"kind": "KubeProxyConfiguration", "mode": "nftables", "conntrack": map[string]any{"maxPerCore": 7}},
			{"kind": "KubeletConfiguration", "failCgroupV1": true},
		}},
		"a join is left alone": {in: "kind: JoinConfiguration\n", want: []map[string]any{{"kind": "JoinConfiguration"}}},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := patchConfig([]byte(tt.in), tt.v)
			if err != nil {
				t.Fatal(err)
			}
			got, err := readDocuments(out)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := patchConfig([]byte("kind: ["), cgroupV1); err == nil {
		t.Error("broken YAML is accepted")
	}
}

func TestPatchArgumentsLeavesOtherCommandsAlone(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"token", "create"}, {"reset", "--force"}, {}} {
		got, err := patchArguments(args, cgroupV1)
		if err != nil || !cmp.Equal(got, args) {
			t.Errorf("kubeadm %v becomes %v, %v", args, got, err)
		}
	}
	got, err := patchArguments([]string{"join", "1.2.3.4:6443"}, cgroupV1)
	if err != nil || !strings.Contains(strings.Join(got, " "), "--ignore-preflight-errors=SystemVerification") {
		t.Errorf("kubeadm join becomes %v, %v", got, err)
	}
}

func TestNeedsProxyPatch(t *testing.T) {
	for line, want := range map[string]bool{
		"init --pod-network-cidr=10.0.0.0/8": true, "init --config=/x": false, "init --config /x": false, "join a": false, "init phase certs": false, "token list": false,
	} {
		if got := needsProxyPatch(strings.Fields(line)); got != want {
			t.Errorf("kubeadm %s: %t, want %t", line, got, want)
		}
	}
}

func TestKubeletSettingsReserveWhatIsNotTheMachines(t *testing.T) {
	data, err := kubeletSettings(Spec{CPUs: 2, MemoryBytes: 2 << 30}, 8, 16<<30, cgroupV1)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := yaml.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "cgroupDriver": "cgroupfs", "failCgroupV1": false,
		"systemReserved": map[string]any{"cpu": "6", "memory": "15032385536"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}
