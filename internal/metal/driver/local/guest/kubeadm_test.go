package guest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

func TestPatchConfig(t *testing.T) {
	const cluster = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n"
	argument := func(name, value string) any { return map[string]any{"name": name, "value": value} }
	manager := map[string]any{"extraArgs": []any{
		argument("kube-api-burst", "400"), argument("kube-api-qps", "200"), argument("leader-elect-retry-period", "1s"),
	}}
	for name, tt := range map[string]struct {
		in   string
		h    traits
		want []map[string]any
	}{
		"both halves are added": {in: cluster, h: traits{cgroups: cgroupV1}, want: []map[string]any{
			{"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration", "controllerManager": manager},
			{"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "conntrack": map[string]any{"maxPerCore": 0}},
			{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "failCgroupV1": false},
		}},
		"cgroups of version 2 need no word": {in: cluster, h: traits{cgroups: cgroupV2}, want: []map[string]any{
			{"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration", "controllerManager": manager},
			{"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "conntrack": map[string]any{"maxPerCore": 0}},
		}},
		"kube-proxy uses nftables where that works": {in: cluster, h: traits{cgroups: cgroupV2, nftables: true}, want: []map[string]any{
			{"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration", "controllerManager": manager},
			{"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "nftables", "conntrack": map[string]any{"maxPerCore": 0}},
		}},
		"what is said stays": {in: "---\n" + cluster + "---\nkind: KubeProxyConfiguration\nmode: iptables\nconntrack: {maxPerCore: 7}\n---\nkind: KubeletConfiguration\nfailCgroupV1: true\n", h: traits{cgroups: cgroupV1, nftables: true}, want: []map[string]any{
			{"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration", "controllerManager": manager},
			{"kind": "KubeProxyConfiguration", "mode": "iptables", "conntrack": map[string]any{"maxPerCore": 7}},
			{"kind": "KubeletConfiguration", "failCgroupV1": true},
		}},
		"arguments that are given stay": {
			in: cluster + "controllerManager: {extraArgs: [{name: kube-api-qps, value: \"7\"}, {name: v, value: \"2\"}]}\n---\nkind: KubeProxyConfiguration\n",
			want: []map[string]any{
				{"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration", "controllerManager": map[string]any{"extraArgs": []any{
					argument("kube-api-qps", "7"), argument("v", "2"), argument("kube-api-burst", "400"), argument("leader-elect-retry-period", "1s"),
				}}},
				{"kind": "KubeProxyConfiguration", "conntrack": map[string]any{"maxPerCore": 0}},
			},
		},
		"arguments were a map once": {
			in: "apiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\n---\nkind: KubeProxyConfiguration\n",
			want: []map[string]any{
				{"apiVersion": "kubeadm.k8s.io/v1beta3", "kind": "ClusterConfiguration", "controllerManager": map[string]any{"extraArgs": map[string]any{
					"kube-api-qps": "200", "kube-api-burst": "400", "leader-elect-retry-period": "1s",
				}}},
				{"kind": "KubeProxyConfiguration", "conntrack": map[string]any{"maxPerCore": 0}},
			},
		},
		"a join is left alone": {in: "kind: JoinConfiguration\n", want: []map[string]any{{"kind": "JoinConfiguration"}}},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := patchConfig([]byte(tt.in), tt.h)
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
	if _, err := patchConfig([]byte("kind: ["), traits{}); err == nil {
		t.Error("broken YAML is accepted")
	}
}

func TestPatchArgumentsLeavesOtherCommandsAlone(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"token", "create"}, {"reset", "--force"}, {}} {
		got, err := patchArguments(args, traits{})
		if err != nil || !cmp.Equal(got, args) {
			t.Errorf("kubeadm %v becomes %v, %v", args, got, err)
		}
	}
	got, err := patchArguments([]string{"join", "1.2.3.4:6443"}, traits{})
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

func TestKubeletReservesHostResources(t *testing.T) {
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

func TestFounds(t *testing.T) {
	for line, want := range map[string]bool{
		"init --config /run/kubeadm/kubeadm.yaml": true, "--v=5 init": true, "join 198.18.0.9:6443 --control-plane": false,
		"init phase etcd local": false, "init --dry-run": false, "reset -f": false, "version": false,
	} {
		if got := founds(strings.Fields(line)); got != want {
			t.Errorf("kubeadm %s founds a cluster: %t, want %t", line, got, want)
		}
	}
}
