package clusters_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/test/managertest"
)

// apart is the cluster with external etcd.
const apart = "apart"

// TestClusterWithExternalEtcd follows a cluster with external etcd: its control plane starts when
// etcd is healthy, an upgrade replaces etcd first and keeps its endpoints, certificates are renewed
// on request and before they expire, growth adds endpoints, and a deletion leaves nothing.
func TestClusterWithExternalEtcd(t *testing.T) {
	w := newWorld(t, managertest.Checked)
	t.Chdir(t.TempDir())
	old := strings.Replace(named(apart), "  datacenterRef:", "  externalEtcdConfiguration: {count: 1}\n  datacenterRef:", 1)
	w.drover("create", "cluster", "-f", w.spec(old))
	w.ready(apart, "1/1", "1/1")
	endpoints := w.externalEndpoints(1)
	first := w.etcdMachines()
	w.startedAfterEtcd()

	w.drover("upgrade", "cluster", "-f", w.spec(old, `"1.35"`, `"1.36"`))
	w.ready(apart, "1/1", "1/1")
	w.hasVersion(apart, "v1.36.3")
	w.startedAfterEtcd()
	if diff := cmp.Diff(endpoints, w.externalEndpoints(1)); diff != "" {
		t.Errorf("the upgrade has changed the endpoints (-before +after):\n%s", diff)
	}
	for name := range w.etcdMachines() {
		if first[name] {
			t.Errorf("machine %q of etcd was not upgraded", name)
		}
	}

	w.until("the control plane knows that etcd is healthy", func() error {
		k := &controlplanev1.KubeadmControlPlane{}
		w.must(w.Get(w.Context(), client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: apart}, k))
		if !meta.IsStatusConditionTrue(k.Status.Conditions, controlplanev1.KubeadmControlPlaneEtcdClusterHealthyCondition) {
			return fmt.Errorf("conditions: %+v", k.Status.Conditions)
		}
		return nil
	})
	w.renewCertificates(endpoints)
	w.letCertificatesExpire()

	w.change(apart, func(c *anywherev1.Cluster) { c.Spec.ExternalEtcdConfiguration.Count = 3 })
	w.ready(apart, "1/1", "1/1")
	w.until("the control plane knows all endpoints", func() error {
		if n := len(w.etcdMachines()); n != 3 {
			return fmt.Errorf("%d machines of etcd", n)
		}
		return nil
	})
	if grown := w.externalEndpoints(3); grown[0] != endpoints[0] {
		t.Errorf("endpoints %v after %v", grown, endpoints)
	}
	w.quiet()

	w.drover("delete", "cluster", apart, "-n", w.ns, "--yes")
	w.awaitDeletion(apart)
}

// externalEndpoints returns the endpoints that API servers use, which are those of etcd.
func (w *world) externalEndpoints(members int) []string {
	w.Helper()
	k, etcd := &controlplanev1.KubeadmControlPlane{}, &etcdv1.EtcdadmCluster{}
	w.must(w.Get(w.Context(), client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: apart}, k))
	w.must(w.Get(w.Context(), client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: apart + "-etcd"}, etcd))
	got := k.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.Endpoints
	if strings.Join(got, ",") != etcd.Status.Endpoints || len(got) != members || int(etcd.Status.ReadyReplicas) != members {
		w.Fatalf("API servers use %v, etcd has %+v", got, etcd.Status)
	}
	return got
}

// startedAfterEtcd checks that no control plane machine was created before etcd was ready.
func (w *world) startedAfterEtcd() {
	w.Helper()
	etcd := meta.FindStatusCondition(w.cluster(apart).Status.Conditions, anywherev1.EtcdReady)
	if etcd == nil || etcd.Status != metav1.ConditionTrue {
		w.Fatalf("condition %+v", etcd)
	}
	machines := &clusterv1.MachineList{}
	w.must(w.List(w.Context(), machines, client.InNamespace(anywherev1.SystemNamespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: apart}, client.HasLabels{clusterv1.MachineControlPlaneLabel}))
	for _, m := range machines.Items {
		if m.CreationTimestamp.Before(&etcd.LastTransitionTime) {
			w.Errorf("machine %q was created at %s, etcd was ready at %s", m.Name, m.CreationTimestamp, etcd.LastTransitionTime)
		}
	}
}

func (w *world) etcdMachines() map[string]bool {
	w.Helper()
	list := &infrav1.PacketMachineList{}
	w.must(w.List(w.Context(), list, client.InNamespace(anywherev1.SystemNamespace), client.MatchingLabels{etcdv1.MemberLabel: apart + "-etcd"}))
	out := map[string]bool{}
	for _, m := range list.Items {
		out[m.Name] = true
	}
	return out
}

// renewCertificates runs the command as a user without access to machines or Secrets.
func (w *world) renewCertificates(endpoints []string) {
	w.Helper()
	members, planes, certificate := w.etcdMachines(), w.controlPlaneMachines(), w.clientCertificate()
	w.drover("renew", "certificates", apart, "-n", w.ns)
	for name := range w.etcdMachines() {
		if members[name] {
			w.Errorf("machine %q of etcd has its old certificate", name)
		}
	}
	for name := range w.controlPlaneMachines() {
		if planes[name] {
			w.Errorf("control plane machine %q has its old certificate", name)
		}
	}
	if w.clientCertificate() == certificate {
		w.Error("API servers connect to etcd with the old certificate")
	}
	if diff := cmp.Diff(endpoints, w.externalEndpoints(1)); diff != "" {
		w.Errorf("the renewal has changed the endpoints (-before +after):\n%s", diff)
	}
	if !meta.IsStatusConditionTrue(w.cluster(apart).Status.Conditions, anywherev1.CertificatesCurrent) {
		w.Errorf("conditions: %+v", w.cluster(apart).Status.Conditions)
	}
}

// letCertificatesExpire makes the certificates of the control plane machine expire soon, and waits
// until it is replaced.
func (w *world) letCertificatesExpire() {
	w.Helper()
	old := w.controlPlaneMachines()
	for name := range old {
		config := &bootstrapv1.KubeadmConfig{}
		config.Namespace, config.Name = anywherev1.SystemNamespace, name
		soon := time.Now().Add(30 * 24 * time.Hour).UTC().Format(time.RFC3339)
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, clusterv1.MachineCertificatesExpiryDateAnnotation, soon)
		w.must(w.Patch(w.Context(), config, client.RawPatch(types.MergePatchType, []byte(patch))))
	}
	w.until("a machine with old certificates is replaced", func() error {
		for name := range w.controlPlaneMachines() {
			if old[name] {
				return fmt.Errorf("machine %q is still there", name)
			}
		}
		return nil
	})
	w.ready(apart, "1/1", "1/1")
}

func (w *world) controlPlaneMachines() map[string]bool {
	w.Helper()
	list := &clusterv1.MachineList{}
	w.must(w.List(w.Context(), list, client.InNamespace(anywherev1.SystemNamespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: apart}, client.HasLabels{clusterv1.MachineControlPlaneLabel}))
	out := map[string]bool{}
	for i := range list.Items {
		out[list.Items[i].Name] = true
	}
	return out
}

func (w *world) clientCertificate() string {
	w.Helper()
	secret := &corev1.Secret{}
	w.must(w.Get(w.Context(), client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: apart + "-apiserver-etcd-client"}, secret))
	return string(secret.Data[corev1.TLSCertKey])
}
