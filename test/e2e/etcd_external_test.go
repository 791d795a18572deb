package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// externalSpec is the example of other tools for Docker, a management cluster with external etcd
// and a group of workers. Only the Kubernetes version is Drover's.
const externalSpec = `apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: Cluster
metadata:
  name: apart
spec:
  clusterNetwork:
    cniConfig:
      cilium: {}
    pods:
      cidrBlocks:
        - 192.168.0.0/16
    services:
      cidrBlocks:
        - 10.96.0.0/12
  controlPlaneConfiguration:
    count: 1
  datacenterRef:
    kind: DockerDatacenterConfig
    name: apart
  externalEtcdConfiguration:
    count: 1
  kubernetesVersion: "1.35"
  managementCluster:
    name: apart
  workerNodeGroupConfigurations:
    - count: 1
      name: md-0
---
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: DockerDatacenterConfig
metadata:
  name: apart
spec: {}
`

// TestExternalEtcd runs the etcd of a management cluster on a machine of its own, with the real
// kubeadm: an upgrade replaces the machine, the endpoint and the data stay, and a deletion leaves
// nothing.
func TestExternalEtcd(t *testing.T) {
	t.Parallel()
	e := newApart(t)
	for _, step := range []struct {
		name string
		run  func(*testing.T, *apart)
	}{
		{"the example of other tools becomes a management cluster with external etcd", testApartReady},
		{"an upgrade replaces the member and keeps endpoint and data", testApartUpgrade},
		{"deletion leaves neither device nor address", testApartDeletion},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, e.in(t)) }) {
			t.Log(e.in(t).drover("describe", "cluster", "apart", "--kubeconfig", e.file).stdout)
			return
		}
	}
}

// apart is a management cluster with external etcd.
type apart struct {
	*fleet
	// dir is where commands run, and file the cluster's own kubeconfig.
	dir, file string
	// endpoint is that of etcd, and member the machine that runs it.
	endpoint, member string
}

func newApart(t *testing.T) *apart {
	t.Helper()
	if os.Geteuid() != 0 || testing.Short() {
		t.Skip("local machines need root, and minutes")
	}
	e := &apart{fleet: &fleet{plane: newPlane(t)}, dir: t.TempDir()}
	e.file = filepath.Join(e.dir, "apart", "apart-eks-a-cluster.kubeconfig")
	e.name()
	t.Cleanup(func() {
		e.in(t)
		if bootstrap := e.bootstrap("apart"); len(processes(bootstrap)) > 0 {
			e.drover("down", "--purge", "--home", bootstrap)
		}
		e.checkPurge(t)
	})
	return e
}

func (e *apart) in(t *testing.T) *apart {
	f := *e.fleet
	f.plane = e.plane.in(t)
	e.fleet = &f
	return e
}

// here runs a command in the directory with the spec.
func (e *apart) here(args ...string) {
	e.t.Helper()
	cmd := e.command(args...)
	cmd.Dir = e.dir
	began := time.Now()
	r := e.run(cmd)
	e.t.Logf("drover %s took %s", strings.Join(args, " "), time.Since(began).Round(100*time.Millisecond))
	if r.code != 0 {
		e.t.Fatalf("drover %s ended with %d:\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	}
	e.noBootstrap("apart")
}

func (e *apart) write(spec string) {
	e.t.Helper()
	if err := os.WriteFile(filepath.Join(e.dir, "apart.yaml"), []byte(spec), 0o600); err != nil {
		e.t.Fatal(err)
	}
}

// inside runs kubectl on the cluster.
func (e *apart) inside(args ...string) string {
	e.t.Helper()
	return e.must(append([]string{"kubectl", "--kubeconfig", e.file}, args...)...).stdout
}

// field returns a field of an object of the cluster, which has its own objects.
func (e *apart) field(object, path string) string {
	e.t.Helper()
	return e.inside("get", "-n", "eksa-system", object, "-o", "jsonpath={"+path+"}")
}

// observe reads the endpoint and the member, and checks that API servers use this endpoint.
func (e *apart) observe() (endpoint, member string) {
	e.t.Helper()
	endpoint = e.field("etcdadmcluster/apart-etcd", ".status.endpoints")
	member = e.field("etcdadmcluster/apart-etcd", ".status.members[*].name")
	used := e.field("kubeadmcontrolplane/apart", ".spec.kubeadmConfigSpec.clusterConfiguration.etcd.external.endpoints[*]")
	if endpoint == "" || used != endpoint {
		e.t.Fatalf("API servers use %q, the endpoint is %q", used, endpoint)
	}
	if pods := e.inside("get", "pods", "-n", "kube-system", "-o", "name"); strings.Contains(pods, "etcd-") || !strings.Contains(pods, "kube-apiserver-") {
		e.t.Errorf("the control plane runs\n%s", pods)
	}
	return endpoint, member
}

func testApartReady(t *testing.T, e *apart) {
	e.write(externalSpec)
	e.here("create", "cluster", "-f", "apart.yaml")
	e.endpoint, e.member = e.observe()
	if has := e.countResources(); has[0] != 3 {
		t.Errorf("there are %d machines, want one each for etcd, the control plane and workers", has[0])
	}
	e.inside("create", "configmap", "canary", "--from-literal=word="+canary)
	tree := e.must("describe", "cluster", "apart", "--kubeconfig", e.file).stdout
	if !strings.Contains(tree, "EtcdadmCluster/apart-etcd") || !strings.Contains(tree, "PacketMachine/"+e.member) {
		t.Errorf("the tree lacks etcd:\n%s", tree)
	}
}

func testApartUpgrade(t *testing.T, e *apart) {
	e.write(strings.Replace(externalSpec, `"1.35"`, `"1.36"`, 1))
	e.here("upgrade", "cluster", "-f", "apart.yaml")
	endpoint, member := e.observe()
	if endpoint != e.endpoint || member == e.member {
		t.Errorf("member %q at %q was %q at %q", member, endpoint, e.member, e.endpoint)
	}
	if word := e.inside("get", "configmap", "canary", "-o", "jsonpath={.data.word}"); word != canary {
		t.Errorf("the data is %q", word)
	}
	// The Node of a former machine is deleted last.
	e.await("only new nodes are left", func() bool {
		return e.inside("get", "nodes", "-o", "jsonpath={.items[*].status.nodeInfo.kubeletVersion}") == newKubernetes+" "+newKubernetes
	})
}

func testApartDeletion(t *testing.T, e *apart) {
	e.here("delete", "cluster", "-f", "apart.yaml", "--yes")
	if has := e.countResources(); has != [2]int{} {
		t.Errorf("%d machines and %d addresses are left", has[0], has[1])
	}
}
