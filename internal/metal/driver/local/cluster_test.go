package local

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/kube/node"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/driver/local/guest"
)

// conflist configures a pod network: the bridge plugin with the node's pod CIDR.
const conflist = `{"cniVersion":"1.0.0","name":"pods","plugins":[
{"type":"bridge","bridge":"cni0","isGateway":true,"ipMasq":true,"ipam":{"type":"host-local","ranges":[[{"subnet":"%s"}]],"routes":[{"dst":"0.0.0.0/0"}]}},
{"type":"portmap","capabilities":{"portMappings":true}}]}`

const token = "abcdef.0123456789abcdef"

// clusterUserdata is a short form of Cluster API's userdata for a control plane, with the commands
// of Packet templates. Some of them can't work here, and one breaks the configuration of
// containerd.
func clusterUserdata(kubernetes, address, pods string) string {
	return fmt.Sprintf(`## template: jinja
#cloud-config
write_files:
- path: /etc/cni/net.d/10-pods.conflist
  content: |
    %s
- path: /run/kubeadm/kubeadm.yaml
  owner: root:root
  permissions: '0640'
  content: |
    ---
    apiVersion: kubeadm.k8s.io/v1beta4
    kind: ClusterConfiguration
    kubernetesVersion: %s
    controlPlaneEndpoint: %s:6443
    networking:
      podSubnet: 10.244.0.0/16
    ---
    apiVersion: kubeadm.k8s.io/v1beta4
    kind: InitConfiguration
    bootstrapTokens:
    - token: %s
    nodeRegistration:
      name: '{{ ds.meta_data.local_hostname }}'
      kubeletExtraArgs:
      - name: provider-id
        value: 'equinixmetal://{{ v1.instance_id }}'
runcmd:
- swapoff -a
- mount -a
- modprobe br_netfilter
- sysctl --system
- apt-get update -y
- containerd config default > /etc/containerd/config.toml
- sed -i 's,SystemdCgroup = false,SystemdCgroup = true,' /etc/containerd/config.toml
- systemctl daemon-reload
- systemctl enable containerd
- systemctl restart containerd
- ip addr add %s/32 dev lo
- mkdir -p /run/cluster-api
- kubeadm init --config /run/kubeadm/kubeadm.yaml && echo success > /run/cluster-api/bootstrap-success.complete
`, indent(fmt.Sprintf(conflist, pods)), kubernetes, address, token, address)
}

// workerUserdata is userdata of a machine that joins.
func workerUserdata(address, pods string) []byte {
	return fmt.Appendf(nil, "#cloud-config\nwrite_files:\n- path: /etc/cni/net.d/10-pods.conflist\n  content: |\n    %s\nruncmd:\n"+
		"- kubeadm join %s:6443 --token %s --discovery-token-unsafe-skip-ca-verification\n", indent(fmt.Sprintf(conflist, pods)), address, token)
}

func indent(text string) string { return strings.ReplaceAll(text, "\n", "\n    ") }

func TestKubeadmCreatesACluster(t *testing.T) {
	f := newFixture(t)
	f.serveMetadata()
	start := time.Now()
	stage := func(name string) { t.Logf("%6.1f s %s", time.Since(start).Seconds(), name) }

	first := f.device("cp-1", "")
	address := first.Addresses[0].IP.String()
	first.Userdata = []byte(clusterUserdata(version.Kubernetes, address, "10.244.0.0/24"))
	f.boot(first)
	f.closedBeforeTheEnd(first.ID)
	stage("kubeadm init done")
	kubectl := "kubectl --kubeconfig /etc/kubernetes/admin.conf "
	f.run(first.ID, kubectl+"wait --for=condition=Ready node/cp-1 --timeout=180s")
	stage("control plane node ready")
	if got, want := f.run(first.ID, kubectl+"get node cp-1 -o jsonpath={.spec.providerID}"), "equinixmetal://"+first.ID; got != want {
		t.Errorf("providerID %q, want %q", got, want)
	}

	second := f.device("worker-1", "")
	second.Userdata = workerUserdata(address, "10.244.1.0/24")
	f.boot(second)
	stage("kubeadm join done")
	f.run(first.ID, kubectl+"wait --for=condition=Ready node --all --timeout=180s")
	stage("worker node ready")
	f.run(first.ID, kubectl+"-n kube-system rollout status deployment/coredns daemonset/kube-proxy --timeout=120s")
	stage("CoreDNS and kube-proxy ready")
	if got := f.run(first.ID, kubectl+"get node worker-1 -o jsonpath={.status.allocatable.memory}"); !strings.HasSuffix(got, "Mi") || len(got) > len("2048Mi") {
		t.Errorf("a machine of 2 GiB offers %s to pods", got)
	}

	// A network add-on would do this.
	f.run(first.ID, "ip route add 10.244.1.0/24 via "+second.Addresses[0].IP.String())
	f.run(second.ID, "ip route add 10.244.0.0/24 via "+address)
	f.run(first.ID, kubectl+"create -f - <<'EOF'\n"+web+"EOF")
	f.run(first.ID, kubectl+"wait --for=condition=Ready pod/web pod/client --timeout=180s")
	if got := f.eventually(first.ID, kubectl+"exec client -- curl -sf --max-time 5 http://web.default.svc.cluster.local", soon); got != "it works" {
		t.Errorf("a pod is answered %q by a service", got)
	}
	stage("a pod reached a service by its name")
	for _, url := range []string{"http://" + guest.MetadataIP + "/", "http://" + f.network.metadata().String() + "/"} {
		if got := f.run(second.ID, "curl -sf --max-time 5 "+url); got != "for "+second.Addresses[0].IP.String() {
			t.Errorf("the machine is answered %q by %s", got, url)
		}
		if got, err := f.try(first.ID, kubectl+"exec client -- curl -sf --max-time 5 "+url); err == nil {
			t.Errorf("a pod is answered %q by %s", got, url)
		}
	}

	skip := f.sink.count(first.ID)
	for _, power := range []driver.Power{driver.Off, driver.On} {
		if err := f.Ensure(t.Context(), first, power); err != nil {
			t.Fatal(err)
		}
	}
	f.running(first.ID, skip)
	f.eventually(first.ID, kubectl+"get --raw /readyz", soon)
	stage("the control plane is back after a power cycle")
}

// closedBeforeTheEnd checks that the machine reported that its userdata must not be served any more
// when its kubelet started, not only when its boot was complete.
func (f *fixture) closedBeforeTheEnd(id string) {
	f.t.Helper()
	f.sink.mu.Lock()
	defer f.sink.mu.Unlock()
	events := f.sink.events[id]
	closed := slices.IndexFunc(events, func(e driver.Event) bool { return e.Type == driver.UserdataClosed })
	end := slices.IndexFunc(events, func(e driver.Event) bool { return strings.HasPrefix(e.Message, "succeeded") })
	if closed < 0 || closed > end {
		f.t.Errorf("userdata was closed by event %d, and the boot ended with event %d", closed, end)
	}
}

// web is a server and a client that reaches it by name.
const web = `apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  nodeName: worker-1
  terminationGracePeriodSeconds: 0
  containers:
  - name: web
    image: ` + node.ToolsImage + `
    command:
    - bash
    - -c
    - |
      cat > /tmp/serve <<'END'
      while read -r line && [ ${#line} -gt 1 ]; do :; done
      printf 'HTTP/1.0 200 OK\r\n\r\nit works'
      END
      exec socat TCP-LISTEN:8080,fork,reuseaddr EXEC:"bash /tmp/serve"
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  nodeName: worker-1
  terminationGracePeriodSeconds: 0
  containers:
  - {name: client, image: ` + node.ToolsImage + `, command: [sleep, infinity]}
`
