package local

import (
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/kube/node"
	"github.com/drover-dev/drover/internal/metal/driver"
)

// TestMachinesAreUpgradedInPlace upgrades a control plane machine and a worker by a minor version.
func TestMachinesAreUpgradedInPlace(t *testing.T) {
	old, err := version.ForMinor(version.Minors()[1])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := node.NewBuilder(old, nil); err != nil {
		t.Skipf("Kubernetes %s is not built: %v", old, err)
	}
	f := newFixture(t)
	f.serveMetadata()
	start := time.Now()
	stage := func(name string) { t.Logf("%6.1f s %s", time.Since(start).Seconds(), name) }
	first, second := f.device("cp-1", ""), f.device("worker-1", "")
	address := first.Addresses[0].IP.String()
	first.Userdata, second.Userdata = []byte(clusterUserdata(old, address, "10.244.0.0/24")), workerUserdata(address, "10.244.1.0/24")
	first.Tags, second.Tags = []string{"kubernetes.io/version:" + old}, []string{"kubernetes.io/version:" + old}
	f.boot(first)
	f.boot(second)
	kubectl := "kubectl --kubeconfig /etc/kubernetes/admin.conf "
	f.run(first.ID, kubectl+"wait --for=condition=Ready node --all --timeout=180s")
	f.run(first.ID, kubectl+"create -f - <<'EOF'\n"+web+"EOF")
	f.run(first.ID, kubectl+"wait --for=condition=Ready pod/web pod/client --timeout=180s")
	// Kubeadm and Kubernetes know nothing about a machine that is powered off.
	containers := f.run(second.ID, "ctr -n k8s.io tasks ls -q 2>/dev/null | sort")
	stage("cluster of " + old + " is ready")

	for _, m := range []driver.Machine{first, second} {
		if err := f.Upgrade(t.Context(), m, version.Kubernetes); err != nil {
			t.Fatal(err)
		}
		stage(m.Hostname + " is upgraded")
	}
	f.eventually(first.ID, kubectl+"get nodes -o jsonpath='{.items[*].status.nodeInfo.kubeletVersion}' | grep -x '"+version.Kubernetes+" "+version.Kubernetes+"'", soon)
	f.run(first.ID, kubectl+"wait --for=condition=Ready node --all --timeout=180s")
	if got := f.eventually(first.ID, kubectl+"version -o json | jq -r .serverVersion.gitVersion", soon); got != version.Kubernetes {
		t.Errorf("the API server runs %s", got)
	}
	if got := f.run(first.ID, "cat /etc/kubernetes/manifests/*.yaml | grep -c 'image: .*:"+version.Kubernetes+"'"); got != "3" {
		t.Errorf("%s static Pods have the new version", got)
	}
	if got := f.run(second.ID, "ctr -n k8s.io tasks ls -q 2>/dev/null | sort"); got != containers {
		t.Errorf("containers of the worker were restarted: %s, want %s", got, containers)
	}
	f.run(first.ID, kubectl+"exec client -- true")

	before := f.sink.count(second.ID)
	if err := f.Upgrade(t.Context(), second, version.Kubernetes); err != nil || f.sink.count(second.ID) != before {
		t.Errorf("another upgrade to the same version did something: %v", err)
	}
	skip := f.sink.count(second.ID)
	for _, power := range []driver.Power{driver.Off, driver.On} {
		if err := f.Ensure(t.Context(), second, power); err != nil {
			t.Fatal(err)
		}
	}
	f.running(second.ID, skip)
	if got := f.run(second.ID, "kubelet --version"); !strings.HasSuffix(got, version.Kubernetes) {
		t.Errorf("after a power cycle, the machine has %s", got)
	}
}
