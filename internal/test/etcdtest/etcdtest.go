// Package etcdtest provides tests with a real etcd with TLS, and the objects with which a
// management plane describes it as the external etcd of a cluster. Start with Start.
package etcdtest

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/drover-dev/drover/internal/base/pki"
	"github.com/drover-dev/drover/internal/kube"
	"github.com/drover-dev/drover/internal/model/scheme"
	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/workload/etcd"
)

// Etcd is a running etcd.
type Etcd struct {
	etcd.Cluster

	// Binary is what it runs.
	Binary kube.Binary
	// Authority is the CA of etcd and of the cluster.
	Authority *pki.Authority
	Dir       string
	Members   []Member
	t         testing.TB
}

// Member is a member with its URLs and its data directory.
type Member struct {
	Name, Client, Peer, Dir string
	process                 *kubetest.Process
}

// Start starts an etcd with members named m0, m1, … that stops with the test.
func Start(t testing.TB, members int) *Etcd {
	t.Helper()
	if testing.Short() {
		t.Skip("starts etcd: left out of short runs")
	}
	binary, err := kube.Find(kube.FindOptions{})
	if err != nil {
		t.Skip(err)
	}
	e := &Etcd{t: t, Binary: binary, Dir: t.TempDir()}
	e.Authority, err = pki.NewAuthority("etcd", time.Now(), time.Hour)
	must(t, err)
	e.writePair("ca", e.Authority.PEM(), e.Authority.Key)
	e.issue("server")
	for i := range members {
		name := fmt.Sprintf("m%d", i)
		e.Members = append(e.Members, Member{
			Name: name, Client: "https://" + kubetest.FreeAddress(t), Peer: "https://" + kubetest.FreeAddress(t), Dir: filepath.Join(e.Dir, name),
		})
	}
	for i := range e.Members {
		e.Run(i)
	}
	e.Cluster = etcd.Cluster{ObjectKey: client.ObjectKey{Namespace: "default", Name: "dev"}, Objects: e.objects()}
	e.AwaitHealthy()
	return e
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (e *Etcd) issue(name string) {
	e.t.Helper()
	template := pki.Template(pkix.Name{CommonName: name}, []string{"127.0.0.1", "localhost"}, time.Now(), time.Hour)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	cert, key, err := e.Authority.Issue(template)
	must(e.t, err)
	e.writePair(name, cert, key)
}

func (e *Etcd) file(name string) string { return filepath.Join(e.Dir, name) }

func (e *Etcd) writePair(name string, cert, key []byte) {
	e.t.Helper()
	must(e.t, os.WriteFile(e.file(name+".crt"), cert, 0o600))
	must(e.t, os.WriteFile(e.file(name+".key"), key, 0o600))
}

// InitialCluster is the value of the flag of that name.
func (e *Etcd) InitialCluster() string {
	var all []string
	for _, m := range e.Members {
		all = append(all, m.Name+"="+m.Peer)
	}
	return strings.Join(all, ",")
}

// Run starts a member with the data that it has.
func (e *Etcd) Run(i int) {
	e.t.Helper()
	m := &e.Members[i]
	cert, key, ca := e.file("server.crt"), e.file("server.key"), e.file("ca.crt")
	m.process = kubetest.StartProcess(e.t, e.Binary.Command(context.WithoutCancel(e.t.Context()), "etcd",
		"--name="+m.Name, "--data-dir="+m.Dir, "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls="+m.Client, "--advertise-client-urls="+m.Client,
		"--listen-peer-urls="+m.Peer, "--initial-advertise-peer-urls="+m.Peer, "--initial-cluster="+e.InitialCluster(),
		"--client-cert-auth", "--cert-file="+cert, "--key-file="+key, "--trusted-ca-file="+ca,
		"--peer-client-cert-auth", "--peer-cert-file="+cert, "--peer-key-file="+key, "--peer-trusted-ca-file="+ca))
}

// Stop stops a member.
func (e *Etcd) Stop(i int) {
	e.t.Helper()
	e.Members[i].process.Stop(e.t)
}

// AwaitHealthy waits until all members are healthy.
func (e *Etcd) AwaitHealthy() {
	e.t.Helper()
	kubetest.Await(e.t, time.Minute, func() error {
		opened, err := etcd.Open(e.t.Context(), e.Cluster)
		if err != nil {
			return err
		}
		members, err := opened.Members(e.t.Context())
		if err != nil {
			return err
		}
		for _, m := range members {
			if m.Health != etcd.Healthy {
				return fmt.Errorf("member %q is not healthy: %s", m.Name, m.Health)
			}
		}
		return nil
	})
}

// objects are those of the management plane.
func (e *Etcd) objects() client.Client {
	e.t.Helper()
	kinds, err := scheme.New()
	must(e.t, err)
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }
	pair := func(name, file string) *corev1.Secret {
		cert, err := os.ReadFile(e.file(file + ".crt"))
		must(e.t, err)
		key, err := os.ReadFile(e.file(file + ".key"))
		must(e.t, err)
		return &corev1.Secret{ObjectMeta: meta(name), Data: map[string][]byte{corev1.TLSCertKey: cert, corev1.TLSPrivateKeyKey: key}}
	}
	plane := &controlplanev1.KubeadmControlPlane{ObjectMeta: meta("dev-control-plane")}
	for _, m := range e.Members {
		at := &plane.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External
		at.Endpoints = append(at.Endpoints, m.Client)
	}
	ca := pair("dev-etcd", "ca")
	delete(ca.Data, corev1.TLSPrivateKeyKey) // as for external etcd
	return fake.NewClientBuilder().WithScheme(kinds).WithRuntimeObjects([]runtime.Object{
		&clusterv1.Cluster{ObjectMeta: meta("dev"), Spec: clusterv1.ClusterSpec{
			ControlPlaneRef: clusterv1.ContractVersionedObjectReference{APIGroup: controlplanev1.GroupVersion.Group, Kind: "KubeadmControlPlane", Name: plane.Name},
		}},
		plane, ca, pair("dev-apiserver-etcd-client", "server"), pair("dev-ca", "ca"),
	}...).Build()
}
